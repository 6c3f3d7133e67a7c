#include <filesystem>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "tokenizer/json/tokenizer_document.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"

namespace sluice::tokenizer {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string read(const fs::path& path) { return read_text_file(path.string(), kMaxTokenizerBytes); }

// The number of embedding rows in the config.json of a model; 0 without the file or the field.
TokenId model_vocab_in(const std::string& path) {
  if (!is_file(path)) return 0;
  const Json json = read_json_file(path);
  return static_cast<TokenId>(
      JsonObject(json, path).integer_or("vocab_size", 0, 0, std::numeric_limits<TokenId>::max()));
}

TokenizerConfig config_beside(const fs::path& path) {
  TokenizerConfig config = read_tokenizer_config((path.parent_path() / "tokenizer_config.json").string());
  config.model_vocab = model_vocab_in((path.parent_path() / "config.json").string());
  return config;
}

std::unique_ptr<Tokenizer> load_json(const fs::path& path, const StopRequest& stop) {
  return load_tokenizer_json(read(path), path.string(), config_beside(path), stop);
}

std::unique_ptr<Tokenizer> load_vocabulary_and_merges(const fs::path& vocab, const fs::path& merges,
                                                      const StopRequest& stop) {
  const std::string vocab_text = read(vocab);
  const std::string merges_text = read(merges);
  return load_vocab_merges({vocab_text, merges_text, vocab.string(), merges.string()}, config_beside(vocab),
                           stop);
}

std::unique_ptr<Tokenizer> load_sentencepiece_file(const fs::path& path) {
  return load_sentencepiece(read(path), path.string(), config_beside(path));
}

// tokenizer.model, else the last of tokenizer.model.v1, .v2, … (mistral-common appends the version).
fs::path sentencepiece_in(const fs::path& directory) {
  if (is_file(directory / "tokenizer.model")) return directory / "tokenizer.model";
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find("tokenizer") == std::string::npos || name.find(".model.v") == std::string::npos) continue;
    if (is_file(entry.path()) && (newest.empty() || newest.extension() < entry.path().extension()))
      newest = entry.path();
  }
  return newest;
}

std::unique_ptr<Tokenizer> load_directory(const fs::path& directory, const StopRequest& stop) {
  if (is_file(directory / "tokenizer.json")) return load_json(directory / "tokenizer.json", stop);
  if (is_file(directory / "vocab.json") && is_file(directory / "merges.txt")) {
    return load_vocabulary_and_merges(directory / "vocab.json", directory / "merges.txt", stop);
  }
  const fs::path model = sentencepiece_in(directory);
  return model.empty() ? nullptr : load_sentencepiece_file(model);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const StopRequest& stop) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Error(ErrorKind::kNotFound, "no such file or directory")
        .in(path)
        .expected("a tokenizer.json, a tokenizer.model or a directory")
        .found(status.type() == fs::file_type::not_found ? "nothing" : error.message())
        .fix("check the path");
  }
  if (fs::is_directory(status)) return load_directory(path, stop);
  const fs::path file(path);
  const std::string name = file.filename().string();
  if (name.ends_with(".json")) return load_json(file, stop);
  if (name.find(".model") != std::string::npos) return load_sentencepiece_file(file);
  throw Error(ErrorKind::kUnsupported, "not a tokenizer file")
      .in(path)
      .expected("a tokenizer.json, a tokenizer.model or a directory")
      .found("a file of another name")
      .fix("name one of these");
}

}  // namespace sluice::tokenizer
