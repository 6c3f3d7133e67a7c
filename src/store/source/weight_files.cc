#include "store/source/weight_files.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"
#include "base/setting.h"
#include "store/json_reader.h"
#include "store/source/gguf_names.h"

namespace sluice::store {
namespace {

constexpr Bytes kMaxIndexBytes = 256 * kMiB;
constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

// Formats that model hubs offer beside safetensors, by the last component of the path.
constexpr std::array kForeignPatterns = {
    "*.gguf",      "*.ggml",    "*.pt",     "*.pth", "*.ckpt",      "*.h5",          "*.onnx",
    "*.onnx_data", "*.msgpack", "*.pickle", "*.npz", "*model*.bin", "*weights*.bin", "consolidated*.bin"};
// Any file may be called .bin; a file of this size is weights.
constexpr std::array kBinaryPattern = {"*.bin"};
constexpr Bytes kLargeBinary = 64 * kMiB;
// Known files with such names that hold no weights.
constexpr std::array kNotWeights = {"training_args.bin", "optimizer.bin", "optimizer.pt",
                                    "scheduler.pt",      "scheduler.bin", "rng_state*.pth",
                                    "random_states*.pkl"};

std::string_view last_component(std::string_view relative) {
  const std::size_t slash = relative.rfind('/');
  return slash == std::string_view::npos ? relative : relative.substr(slash + 1);
}

template <std::size_t N>
bool matches_any(std::string_view relative, const std::array<const char*, N>& patterns) {
  const std::string name(last_component(relative));
  return std::any_of(patterns.begin(), patterns.end(), [&](const char* pattern) {
    return ::fnmatch(pattern, name.c_str(), FNM_CASEFOLD) == 0;
  });
}

bool is_foreign_weights(const SourceFile& file) {
  if (matches_any(file.relative, kNotWeights)) return false;
  return matches_any(file.relative, kForeignPatterns) ||
         (matches_any(file.relative, kBinaryPattern) && file.size >= kLargeBinary);
}

bool is_top(std::string_view relative) { return relative.find('/') == std::string_view::npos; }

std::vector<std::string> names_where(const SourceDirectory& directory, auto&& wanted) {
  std::vector<std::string> names;
  for (const SourceFile& file : directory.files) {
    if (wanted(file)) names.push_back(file.relative);
  }
  return names;
}

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 3) text += fmt::format(" and {} more", names.size() - 3);
  return text;
}

WeightSet set_of_index(const SourceDirectory& directory, const std::string& index) {
  const std::string path = directory.path + "/" + index;
  WeightSet set;
  set.index = index;
  set.mapping = parse_weight_index(read_text_file(path, kMaxIndexBytes), path);
  for (const auto& [tensor, file] : set.mapping) set.files.push_back(file);
  std::sort(set.files.begin(), set.files.end());
  set.files.erase(std::unique(set.files.begin(), set.files.end()), set.files.end());
  return set;
}

// Weights in another format than safetensors. What is to be named instead of the directory, if they are GGUF.
Error foreign_weights(const SourceDirectory& directory, const std::vector<std::string>& foreign) {
  const std::vector<GgufNames> models = gguf_models(foreign);
  const auto fix = [&]() -> std::string {
    if (models.empty()) return "use the safetensors version of this model";
    if (models.size() > 1) return "name one of its GGUF files, or use the safetensors version of this model";
    return fmt::format("name the file, not its directory: sluice run {}/{}", directory.path,
                       models.front().first);
  };
  return Error(ErrorKind::kUnsupported, "no safetensors weights here")
      .in(directory.path)
      .expected("*.safetensors")
      .found(some_of(foreign))
      .fix(fix());
}

WeightSet choose_set(const SourceDirectory& directory, const std::vector<std::string>& safetensors) {
  const std::vector<std::string> indexes = names_where(directory, [](const SourceFile& file) {
    return is_top(file.relative) && file.relative.ends_with(kIndexSuffix);
  });
  const bool has_single = std::find(safetensors.begin(), safetensors.end(), kSingleFile) != safetensors.end();
  if (!indexes.empty()) {
    const std::string preferred = std::string("model") + std::string(kIndexSuffix);
    if (indexes.size() > 1 && std::find(indexes.begin(), indexes.end(), preferred) == indexes.end()) {
      throw Error(ErrorKind::kInvalid, "several shard indexes")
          .in(directory.path)
          .expected("one")
          .found(some_of(indexes))
          .fix("leave all but one out with " + Setting::kExclude);
    }
    return set_of_index(directory, indexes.size() > 1 ? preferred : indexes.front());
  }
  if (has_single) return {.files = {std::string(kSingleFile)}, .index = {}, .mapping = {}};
  std::vector<std::string> top;
  std::copy_if(safetensors.begin(), safetensors.end(), std::back_inserter(top), is_top);
  if (top.size() == 1) return {.files = top, .index = {}, .mapping = {}};
  if (top.empty()) {
    const std::vector<std::string> foreign = names_where(directory, is_foreign_weights);
    if (!foreign.empty()) throw foreign_weights(directory, foreign);
    throw Error(ErrorKind::kNotFound, "no weights here")
        .in(directory.path)
        .expected("model.safetensors, or model.safetensors.index.json and its shards")
        .found("no *.safetensors file")
        .fix("download the weights, or name the directory that holds them");
  }
  throw Error(ErrorKind::kInvalid, "several safetensors files and no index")
      .in(directory.path)
      .expected("model.safetensors.index.json")
      .found(some_of(top))
      .fix("download the index, or leave all but one set out with " + Setting::kExclude);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> parse_weight_index(std::string_view text,
                                                                    const std::string& path) {
  JsonReader json(text, path);
  std::vector<std::pair<std::string, std::string>> mapping;
  bool has_map = false;
  std::string key, tensor, file;
  json.begin_object();
  while (json.next_key(key)) {
    if (key != "weight_map") {
      json.skip_value();
      continue;
    }
    if (has_map) throw json.error("\"weight_map\" is listed twice");
    has_map = true;
    json.begin_object();
    while (json.next_key(tensor)) {
      json.read_string(file);
      if (!is_safe_relative_path(file)) {
        throw json.error(fmt::format("tensor \"{}\" has an illegal file name", tensor))
            .expected("a relative path inside the directory")
            .found(fmt::format("\"{}\"", file));
      }
      mapping.emplace_back(tensor, file);
    }
  }
  json.end();
  if (!has_map) {
    throw Error(ErrorKind::kInvalid, "the shard index has no weight_map")
        .in(path)
        .fix("download the file again");
  }
  std::sort(mapping.begin(), mapping.end());
  const auto twice = std::adjacent_find(mapping.begin(), mapping.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != mapping.end()) {
    throw Error(ErrorKind::kInvalid, fmt::format("tensor \"{}\" is listed twice", twice->first))
        .in(path)
        .fix("download the file again");
  }
  return mapping;
}

WeightSet select_weights(const SourceDirectory& directory, OtherWeights other_weights) {
  const std::vector<std::string> safetensors =
      names_where(directory, [](const SourceFile& file) { return file.relative.ends_with(".safetensors"); });
  WeightSet set = choose_set(directory, safetensors);
  if (other_weights == OtherWeights::kIgnore) return set;

  std::vector<std::string> others;
  std::set_difference(safetensors.begin(), safetensors.end(), set.files.begin(), set.files.end(),
                      std::back_inserter(others));
  for (std::string& name : names_where(directory, [](const SourceFile& file) {
         return file.size > 0 && is_foreign_weights(file);  // an empty file holds no weights
       }))
    others.push_back(std::move(name));
  if (!others.empty()) {
    throw Error(ErrorKind::kInvalid, "there is a second set of weights beside the first")
        .in(directory.path)
        .expected(
            fmt::format("{} alone", set.index.empty() ? set.files.front() : set.index + " and its files"))
        .found(some_of(others))
        .fix(fmt::format("leave one set out, for example with {} '{}'", mark(Setting::kExclude),
                         others.front()));
  }
  return set;
}

Weights read_weights(const std::string& directory, const WeightSet& set) {
  Weights weights;
  std::vector<std::pair<TensorInfo, TensorPlace>> found;
  for (const std::string& relative : set.files) {
    const std::string path = fmt::format("{}/{}", directory, relative);
    InputFile file;
    try {
      file = InputFile::open(path);
    } catch (Error& error) {
      if (error.kind() == ErrorKind::kNotFound && !set.index.empty()) {
        throw Error(ErrorKind::kNotFound, "the shard index names a file that is not there")
            .in(directory + "/" + set.index)
            .expected(relative)
            .found("no such file")
            .fix("download the missing file");
      }
      throw;
    }
    SafetensorsHeader header = read_safetensors(file);
    const auto index = static_cast<std::uint32_t>(weights.files.size());
    for (SafetensorsTensor& tensor : header.tensors) {
      found.emplace_back(std::move(tensor.info), TensorPlace{index, tensor.offset});
    }
    weights.files.push_back({relative, file.size()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.name, a.second.file) < std::tie(b.first.name, b.second.file);
  });
  const auto path_of = [&](std::uint32_t file) { return directory + "/" + weights.files[file].relative; };
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i].first.name == found[i - 1].first.name) {
      throw Error(ErrorKind::kInvalid, fmt::format("tensor \"{}\" stands in two files", found[i].first.name))
          .in(path_of(found[i].second.file))
          .expected("one")
          .found(weights.files[found[i - 1].second.file].relative + " has it, too")
          .fix("download the checkpoint again, or leave a stray file out with " + Setting::kExclude);
    }
  }

  if (!set.index.empty()) {
    const std::string index_path = directory + "/" + set.index;
    const auto by_name = [](const auto& entry, std::string_view name) { return entry.first < name; };
    for (const auto& [info, place] : found) {
      const auto at = std::lower_bound(set.mapping.begin(), set.mapping.end(), info.name, by_name);
      if (at == set.mapping.end() || at->first != info.name) {
        throw Error(ErrorKind::kInvalid, fmt::format("tensor \"{}\" is not in the shard index", info.name))
            .in(path_of(place.file))
            .expected("an entry in " + set.index)
            .found("none")
            .fix("download the index and its files again");
      }
      if (at->second != weights.files[place.file].relative) {
        throw Error(ErrorKind::kInvalid,
                    fmt::format("the shard index has tensor \"{}\" in another file", info.name))
            .in(index_path)
            .expected(weights.files[place.file].relative)
            .found(at->second)
            .fix("download the index and its files again");
      }
    }
    for (const auto& [tensor, file] : set.mapping) {
      const auto at = std::lower_bound(
          found.begin(), found.end(), tensor,
          [](const auto& entry, const std::string& name) { return entry.first.name < name; });
      if (at == found.end() || at->first.name != tensor) {
        throw Error(ErrorKind::kInvalid,
                    fmt::format("the shard index names tensor \"{}\", which its file lacks", tensor))
            .in(index_path)
            .expected("the tensor in " + file)
            .found("none")
            .fix("download the index and its files again");
      }
    }
  }

  weights.tensors.reserve(found.size());
  weights.places.reserve(found.size());
  for (auto& [info, place] : found) {
    weights.tensors.push_back(std::move(info));
    weights.places.push_back(place);
  }
  return weights;
}

}  // namespace sluice::store
