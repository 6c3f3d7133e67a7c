#include "store/source/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice::store {
namespace {

constexpr std::string_view kExtension = ".gguf", kOf = "-of-", kProjector = "mmproj";
constexpr std::size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits;

// 0 for what is no number of five digits.
std::size_t number_of(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

struct Part {
  std::string stem;  // of all parts of the model
  std::size_t number = 0, count = 0;
};

// Empty for a name of another form than STEM-00002-of-00003.gguf.
std::optional<Part> part_of(std::string_view name) {
  name.remove_suffix(kExtension.size());
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  const Part part{std::string(name.substr(0, name.size() - kTail)), number_of(tail.substr(1, kDigits)),
                  number_of(tail.substr(kTail - kDigits))};
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  if (part.number == 0 || part.number > part.count) return std::nullopt;
  return part;
}

bool is_projector(std::string_view name) {
  std::string file(name.substr(name.rfind('/') + 1));
  std::ranges::transform(file, file.begin(), [](unsigned char c) { return std::tolower(c); });
  return file.find(kProjector) != file.npos;
}

}  // namespace

std::vector<GgufNames> gguf_models(std::span<const std::string> names) {
  std::map<std::string, GgufNames> models;  // by the first file
  for (const std::string& name : names) {
    if (!name.ends_with(kExtension) || is_projector(name)) continue;
    const std::optional<Part> part = part_of(name);
    const std::string first = part ? fmt::format("{}-{:0{}}{}{:0{}}{}", part->stem, 1, kDigits, kOf,
                                                 part->count, kDigits, kExtension)
                                   : name;
    GgufNames& model = models[first];
    model.first = first;
    model.parts = part ? part->count : 1;
    model.files.push_back(name);
  }
  std::vector<GgufNames> all;
  for (auto& [first, model] : models) {
    std::ranges::sort(model.files);
    all.push_back(std::move(model));
  }
  return all;
}

}  // namespace sluice::store
