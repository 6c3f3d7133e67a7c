#include "store/source/source_weights.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "store/source/gguf.h"
#include "store/source/gguf_parts.h"
#include "store/source/gguf_weights.h"
#include "store/source/mxfp4_pairs.h"

namespace sluice::store {
namespace {

std::vector<std::string> names_of(const Weights& weights) {
  std::vector<std::string> names;
  for (const WeightFile& file : weights.files) names.push_back(file.relative);
  return names;
}

SourceWeights read_gguf_source(const std::string& path, const std::vector<std::string>& exclude) {
  check_no_patterns(exclude);
  GgufWeights gguf = gguf_weights(read_gguf_parts(path));
  for (const WeightFile& file : gguf.weights.files)
    if (!is_safe_relative_path(file.relative))
      throw Error(ErrorKind::kInvalid, "the name of the file is not UTF-8")
          .in(shown_text(path))
          .expected("a name that a store can have")
          .found(shown_text(file.relative))
          .fix("give the file another name");
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return {list_files(directory.empty() ? "." : directory, names_of(gguf.weights)), std::move(gguf.weights),
          std::move(gguf.tensors), true};
}

}  // namespace

SourceWeights read_source(const std::string& path, const std::vector<std::string>& exclude) {
  if (looks_like_gguf(path)) return read_gguf_source(path, exclude);
  SourceWeights source;
  source.directory = scan_directory(path, exclude, Depth::kTree);
  source.weights =
      read_weights(source.directory.path, select_weights(source.directory, OtherWeights::kRefuse));
  source.tensors = with_mxfp4_pairs(source.weights, source.directory.path);
  return source;
}

void check_no_patterns(const std::vector<std::string>& exclude) {
  if (exclude.empty()) return;
  throw Error(ErrorKind::kUsage, "of a GGUF file nothing can be left out")
      .in(Setting::kExclude)
      .expected("no pattern, or the directory of a model")
      .found(shown_text(exclude.front()))
      .fix("leave " + Setting::kExclude + " out");
}

SourceDirectory list_again(const SourceWeights& source, const std::vector<std::string>& exclude) {
  return source.gguf ? list_files(source.directory.path, names_of(source.weights))
                     : scan_directory(source.directory.path, exclude, Depth::kTree);
}

}  // namespace sluice::store
