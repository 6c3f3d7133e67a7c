#include <gtest/gtest.h>
#include <stdlib.h>
#include <zstd.h>

#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer::test {

std::string source_path(const std::string& relative) {
  return std::string(SLUICE_SOURCE_DIR) + "/" + relative;
}

namespace {

// The content of the file that this one was packed as a difference from; empty where it stands alone.
std::string like_file(const std::string& relative) {
  static const std::string kMistral = "tests/data/tokenizers/mistral.tokenizer.model.";
  return relative == kMistral + "v1.zst" || relative == kMistral + "v2.zst" ? unpack_zstd(kMistral + "v3.zst")
                                                                            : std::string();
}

}  // namespace

std::string unpack_zstd(const std::string& relative) {
  const std::string packed = read_text_file(source_path(relative), 64 * kMiB);
  const std::string like = like_file(relative);
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  SLUICE_CHECK(size < (64u << 20), relative);
  std::string out(size, '\0');
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decoder(ZSTD_createDCtx(), ZSTD_freeDCtx);
  const std::size_t n = ZSTD_decompress_usingDict(decoder.get(), out.data(), out.size(), packed.data(),
                                                  packed.size(), like.data(), like.size());
  SLUICE_CHECK(!ZSTD_isError(n) && n == out.size(), relative);
  return out;
}

Json golden(const std::string& name) {
  const std::string file = "tests/golden/tokenizers/" + name + ".json.zst";
  return parse_json(unpack_zstd(file), file);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sluice-tokenizer-XXXXXX").string();
  SLUICE_CHECK(mkdtemp(pattern.data()) != nullptr, pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  write_file_atomically(path, content);
  return path;
}

void write_qwen2_files(const TemporaryDirectory& directory) {
  const Json qwen3 = parse_json(unpack_zstd("tests/data/tokenizers/qwen3.tokenizer.json.zst"), "qwen3");
  directory.write("vocab.json", qwen3["model"]["vocab"].dump());
  std::string merges = "#version: 0.2\n";
  for (const Json& rule : qwen3["model"]["merges"]) {
    merges += rule[0].get_ref<const std::string&>();
    merges += ' ';
    merges += rule[1].get_ref<const std::string&>();
    merges += '\n';
  }
  directory.write("merges.txt", merges);
  directory.write(
      "tokenizer_config.json",
      read_text_file(source_path("tests/data/tokenizers/qwen1.5-moe.tokenizer_config.json"), kMiB));
}

std::unique_ptr<Tokenizer> load_golden_tokenizer(const std::string& name) {
  if (name == "qwen2_vocab_merges") {
    const TemporaryDirectory directory;
    write_qwen2_files(directory);
    return load_tokenizer(directory.path());
  }
  const std::string file = golden(name)["file"].get<std::string>();
  if (!file.ends_with(".zst")) return load_tokenizer(source_path(file));
  const TemporaryDirectory directory;
  const bool json = file.ends_with(".json.zst");
  directory.write(json ? "tokenizer.json" : "tokenizer.model", unpack_zstd(file));
  return load_tokenizer(directory.path());
}

}  // namespace sluice::tokenizer::test
