#include "store/source/gguf_names.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "store/source/gguf_parts.h"

namespace sluice::store {
namespace {

constexpr std::string_view kExtension = ".gguf", kProjector = "mmproj";

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
    const std::optional<GgufPartName> part = gguf_part_name(name);
    const std::string first = part ? part->path_of(1) : name;
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
