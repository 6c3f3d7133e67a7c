#include "store/source/gguf_parts.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/shown_text.h"

namespace sluice::store {
namespace {

constexpr std::string_view kPartExtension = ".gguf", kPartOf = "-of-";
constexpr std::size_t kDigits = 5;
constexpr std::string_view kNumber = "split.no", kCount = "split.count", kTensors = "split.tensors.count";

std::optional<std::uint32_t> digits(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A key that holds a number, in whichever width. Empty if there is none.
std::optional<std::uint64_t> number_in(const GgufHeader& header, std::string_view key) {
  const GgufValue* const value = header.find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const whole = std::get_if<std::uint64_t>(value)) return *whole;
  const auto* const number = std::get_if<std::int64_t>(value);
  return number != nullptr && *number >= 0 ? std::optional<std::uint64_t>(*number) : std::nullopt;
}

void expect(const GgufPart& part, std::string_view key, std::uint64_t wanted) {
  const std::optional<std::uint64_t> found = number_in(part.header, key);
  if (found == wanted) return;
  throw Error(ErrorKind::kInvalid, "the file is no part of this model")
      .in(fmt::format("{}: {}", part.path, key))
      .expected(fmt::format("{}", wanted))
      .found(found ? fmt::format("{}", *found) : "no such number")
      .fix("download all parts of the model again");
}

void check_parts(const std::vector<GgufPart>& parts) {
  const std::uint64_t count = parts.size();
  std::uint64_t tensors = 0;
  std::unordered_set<std::string_view> names;
  for (const GgufPart& part : parts) {
    tensors += part.header.tensors.size();
    for (const GgufTensor& tensor : part.header.tensors)
      if (!names.insert(tensor.name).second)
        throw Error(ErrorKind::kInvalid, "a tensor stands in two parts")
            .in(part.path)
            .expected("another name")
            .found('"' + shown_text(tensor.name) + '"')
            .fix("download all parts of the model again");
  }
  for (std::size_t i = 0; i < count; ++i) {
    expect(parts[i], kNumber, i);
    expect(parts[i], kCount, count);
    expect(parts[i], kTensors, tensors);
  }
}

GgufPart read_part(const std::string& path) {
  const InputFile file = InputFile::open(path);
  return {path, file.size(), read_gguf(file)};
}

// A file whose keys say that it is a part, and whose name does not.
[[noreturn]] void refuse_renamed_part(const std::string& path, std::uint64_t count) {
  throw Error(ErrorKind::kInvalid, "the file is a part of a model, and its name does not say which")
      .in(path)
      .expected(fmt::format("NAME-00001-of-{:0{}}{}", count, kDigits, kPartExtension))
      .found(std::filesystem::path(path).filename().string())
      .fix("give all parts the names that they were published under");
}

}  // namespace

std::string GgufPartName::path_of(std::uint32_t part) const {
  return fmt::format("{}-{:0{}}{}{:0{}}{}", stem, part, kDigits, kPartOf, count, kDigits, kPartExtension);
}

std::optional<GgufPartName> gguf_part_name(std::string_view path) {
  // STEM - 00001 -of- 00003 .gguf
  constexpr std::size_t kTail = 1 + kDigits + kPartOf.size() + kDigits;
  if (!path.ends_with(kPartExtension) || path.size() <= kTail + kPartExtension.size()) return std::nullopt;
  path.remove_suffix(kPartExtension.size());
  const std::string_view tail = path.substr(path.size() - kTail);
  const auto number = digits(tail.substr(1, kDigits)), count = digits(tail.substr(kTail - kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kPartOf.size()) != kPartOf || !number || !count)
    return std::nullopt;
  if (*number == 0 || *number > *count) return std::nullopt;
  return GgufPartName{std::string(path.substr(0, path.size() - kTail)), *number, *count};
}

std::vector<GgufPart> read_gguf_parts(const std::string& path) {
  const std::optional<GgufPartName> name = gguf_part_name(path);
  if (name && name->number != 1)
    throw Error(ErrorKind::kInvalid, "a later part of a model cannot be read by itself")
        .in(path)
        .expected("the first part")
        .found(fmt::format("part {} of {}", name->number, name->count))
        .fix(fmt::format("name {}: the others are found beside it", name->path_of(1)));
  std::vector<GgufPart> parts;
  parts.push_back(read_part(path));
  const std::uint64_t count = number_in(parts[0].header, kCount).value_or(1);
  if (!name) {
    if (count > 1) refuse_renamed_part(path, count);
    return parts;
  }
  // A file that has the name of a part and says nothing of parts is a whole model.
  if (parts[0].header.find(kCount) == nullptr && name->count == 1) return parts;
  for (std::uint32_t part = 2; part <= name->count; ++part) {
    const std::string next = name->path_of(part);
    std::error_code ignored;
    if (!std::filesystem::exists(next, ignored))
      throw Error(ErrorKind::kNotFound, "a part of the model is missing")
          .in(next)
          .expected(fmt::format("{} files beside each other", name->count))
          .found("no such file")
          .fix("download it, too");
    parts.push_back(read_part(next));
  }
  check_parts(parts);
  return parts;
}

}  // namespace sluice::store
