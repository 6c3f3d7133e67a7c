#include "golden_writer/weights_list.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/float16.h"
#include "base/json/json.h"
#include "golden_writer/seeded_noise.h"

namespace sluice::golden {
namespace {

constexpr std::int64_t kLargest = 1 << 24;  // for dimensions, and for values' elements

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > 9999) return std::nullopt;
  return number;
}

// "0,2-3" gives 0, 2 and 3; nothing for another text.
std::vector<unsigned> numbers_of(std::string_view list) {
  std::vector<unsigned> numbers;
  while (true) {
    const std::string_view part = list.substr(0, list.find(','));
    const std::size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *last < *first) return {};
    for (unsigned number = *first; number <= *last; ++number) numbers.push_back(number);
    if (part.size() == list.size()) return numbers;
    list.remove_prefix(part.size() + 1);
  }
}

DType storage_type(const JsonObject& entry, DType fallback) {
  const std::string name = entry.string_or("dtype", dtype_name(fallback));
  const std::optional<DType> type = dtype_from_name(name);
  if (type != DType::kBF16 && type != DType::kF16 && type != DType::kF32 && type != DType::kU8)
    entry.fail("dtype", "BF16, F16, F32 or U8");
  return *type;
}

ListedTensor read_entry(const JsonObject& entry, DType dtype) {
  ListedTensor tensor;
  tensor.name = entry.string("name");
  tensor.dtype = storage_type(entry, dtype);
  for (const std::int64_t size : entry.integers_or("shape", {}, 1, kLargest))
    tensor.shape.push_back(static_cast<std::uint64_t>(size));
  if (tensor.shape.empty() || tensor.elements() > kLargest) entry.fail("shape", "up to 2^24 elements");
  tensor.key = entry.string_or("key", "");
  if (const Json* values = entry.find("values")) {
    if (!values->is_array()) entry.fail("values", "numbers");
    for (const Json& value : *values) {
      if (!value.is_number()) entry.fail("values", "numbers");
      tensor.values.push_back(value.get<double>());
    }
    if (tensor.values.size() != tensor.elements()) entry.fail("values", "as many as the shape has elements");
    return tensor;
  }
  tensor.mean = entry.real_or("mean", 0, -1e6, 1e6);
  tensor.scale = entry.real("scale", 0, 1e6);
  return tensor;
}

void append(std::string& bytes, std::uint32_t word, int count) {
  for (int shift = 0; shift < 8 * count; shift += 8) bytes.push_back(static_cast<char>(word >> shift & 0xff));
}

}  // namespace

std::uint64_t ListedTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  return count;
}

std::vector<std::string> expanded_names(std::string_view pattern, const std::string& where) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::size_t close = pattern.find('}', open);
  const auto numbers = close == std::string_view::npos
                           ? std::vector<unsigned>()
                           : numbers_of(pattern.substr(open + 1, close - open - 1));
  if (numbers.empty()) {
    throw Error(ErrorKind::kInvalid, "a name's braces hold no list of numbers")
        .in(where)
        .expected("for example layers.{0,2-3}.x")
        .found(pattern);
  }
  const std::vector<std::string> rests = expanded_names(pattern.substr(close + 1), where);
  std::vector<std::string> names;
  for (const unsigned number : numbers)
    for (const std::string& rest : rests)
      names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), number, rest));
  return names;
}

WeightsList read_weights_list(const std::string& path) {
  const Json json = read_json_file(path);
  const JsonObject object(json, path);
  WeightsList list;
  list.seed = static_cast<std::uint64_t>(object.integer("seed", 0, INT64_MAX));
  const DType dtype = storage_type(object, DType::kBF16);
  const Json* entries = object.find("tensors");
  if (entries == nullptr || !entries->is_array()) object.fail("tensors", "a list of tensors");
  std::set<std::string> seen;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const std::string where = fmt::format("{}: tensors[{}]", path, i);
    const ListedTensor pattern = read_entry(JsonObject((*entries)[i], where), dtype);
    for (const std::string& name : expanded_names(pattern.name, where)) {
      if (!seen.insert(name).second)
        throw Error(ErrorKind::kInvalid, "a tensor is listed twice").in(where).found(name);
      ListedTensor tensor = pattern;
      tensor.name = name;
      if (tensor.key.empty()) tensor.key = name;
      list.tensors.push_back(std::move(tensor));
    }
  }
  return list;
}

std::string stored_bytes(const ListedTensor& tensor, std::uint64_t seed) {
  SeededNoise noise(seed, tensor.key);
  std::string bytes;
  const std::uint64_t count = tensor.elements();
  bytes.reserve(count * dtype_bytes(tensor.dtype));
  for (std::uint64_t i = 0; i < count; ++i) {
    const double product = tensor.values.empty() ? tensor.scale * noise.next() : tensor.values[i];
    const auto value = static_cast<float>(tensor.mean + product);
    switch (tensor.dtype) {
      case DType::kBF16:
        append(bytes, float_to_bf16(value), 2);
        break;
      case DType::kF16:
        append(bytes, double_to_fp16(double{value}), 2);
        break;
      case DType::kU8:
        append(bytes, static_cast<std::uint32_t>(std::llrint(value)), 1);
        break;
      default:
        append(bytes, std::bit_cast<std::uint32_t>(value), 4);
    }
  }
  return bytes;
}

}  // namespace sluice::golden
