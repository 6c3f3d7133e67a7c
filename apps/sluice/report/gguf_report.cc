#include "report/gguf_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/shown_text.h"
#include "base/text_table.h"
#include "store/source/gguf.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

// Vocabularies have hundreds of thousands of entries: of more than these only their number is shown.
constexpr std::size_t kMostShown = 16;

template <class Value>
Json entries_json(const std::vector<Value>& values) {
  if (values.size() > kMostShown) return {{"entries", values.size()}};
  return Json(values);
}
template <class Value>
Json entries_json(const Value& value) {
  return Json(value);
}
Json value_json(const store::GgufValue& value) {
  return std::visit([](const auto& one) { return entries_json(one); }, value);
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

struct OfType {
  std::uint64_t tensors = 0;
  Bytes bytes = 0;
};
std::map<const store::GgufType*, OfType> by_type(const store::GgufHeader& header) {
  std::map<const store::GgufType*, OfType> types;
  for (const store::GgufTensor& tensor : header.tensors) {
    OfType& of_type = types[tensor.type];
    of_type.tensors += 1;
    of_type.bytes += tensor.length;
  }
  return types;
}

std::string shape_text(const store::GgufTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

void print_json(const std::string& path, const store::GgufHeader& header, Bytes file_bytes, bool tensors) {
  Json json = {{"path", path},
               {"format", "gguf"},
               {"version", header.version},
               {"file_bytes", file_bytes},
               {"data_offset", header.data},
               {"tensor_count", header.tensors.size()}};
  json["keys"] = Json::object();
  for (const store::GgufKey& key : header.keys) json["keys"][key.name] = value_json(key.value);
  json["types"] = Json::array();
  for (const auto& [type, of_type] : by_type(header))
    json["types"].push_back({{"type", type->name},
                             {"tensors", of_type.tensors},
                             {"bytes", of_type.bytes},
                             {"computed", type->format != nullptr}});
  if (tensors) json["tensors"] = Json::array();
  for (const store::GgufTensor& tensor : header.tensors)
    if (tensors)
      json["tensors"].push_back({{"name", tensor.name},
                                 {"type", tensor.type->name},
                                 {"shape", tensor.shape},
                                 {"offset", tensor.offset},
                                 {"bytes", tensor.length}});
  std::cout << dump(json) << '\n';
}

void print_keys(const store::GgufHeader& header) {
  for (const store::GgufKey& key : header.keys) {
    std::string value = dump(value_json(key.value));
    if (const auto* const text = std::get_if<std::string>(&key.value)) value = *text;
    std::cout << fmt::format("  {} = {}\n", shown_text(key.name), shown_text(value));
  }
}

}  // namespace

void print_gguf(const std::string& path, bool tensors, bool json) {
  const InputFile file = InputFile::open(path);
  const store::GgufHeader header = store::read_gguf(file);
  if (json) return print_json(path, header, file.size(), tensors);
  print_wrapped(fmt::format("{}: GGUF, version {}; {} keys, {} tensors, {}", escaped_text(path),
                            header.version, header.keys.size(), header.tensors.size(),
                            format_bytes(file.size())));
  print_keys(header);
  std::vector<std::vector<std::string>> rows = {{"type", "tensors", "bytes", ""}};
  for (const auto& [type, of_type] : by_type(header))
    rows.push_back({std::string(type->name), std::to_string(of_type.tensors), format_bytes(of_type.bytes),
                    type->format == nullptr ? "not computed with" : ""});
  if (rows.size() > 1) std::cout << '\n' << text_table(rows, terminal_columns(STDOUT_FILENO, kAnyColumns));
  if (tensors) std::cout << '\n';
  for (const store::GgufTensor& tensor : header.tensors)
    if (tensors)
      std::cout << fmt::format("{:<8} {:<20} {}\n", tensor.type->name, shape_text(tensor),
                               shown_text(tensor.name));
}

}  // namespace sluice::app
