// llama.cpp's vocabularies, ggml-vocab-NAME.gguf with texts and their ids beside, through our loader. They
// are not among our files, since each is under its model's licence: SLUICE_GGUF_VOCABULARIES names a
// directory of them, for example vendor/llama.cpp/models of the source of PyPI's llama-cpp-python.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/gguf/gguf_patterns.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/stages/normalizer.h"

namespace sluice::tokenizer {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_of(const std::string& path) {
  const std::string all = read_text_file(path, kMiB);
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (std::size_t end; (end = all.find(kBetween, begin)) != std::string::npos; begin = end + kBetween.size())
    texts.push_back(all.substr(begin, end - begin));
  if (begin < all.size()) texts.push_back(all.substr(begin));
  return texts;
}

std::vector<std::vector<TokenId>> ids_of(const std::string& path) {
  std::vector<std::vector<TokenId>> all;
  std::istringstream lines(read_text_file(path, kMiB));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return all;
}

void compare(const fs::path& path) {
  const store::GgufHeader header = store::read_gguf(InputFile::open(path.string()));
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_gguf_tokenizer(header, path.filename().string());
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    std::cout << path.filename().string() << ": refused: " << error.what() << '\n';
    return;
  }
  ASSERT_NE(tokenizer, nullptr) << path;
  const GgufSpecials specials = read_gguf_specials(header, path.string());
  std::cout << path.filename().string() << ": bos " << specials.bos.value_or(-1)
            << (specials.add_bos ? ", added" : "") << "; ends";
  for (const TokenId id : specials.ends) std::cout << ' ' << id;
  if (!fs::exists(path.string() + ".inp")) {
    std::cout << "; no texts\n";
    return;
  }
  const std::vector<std::string> texts = texts_of(path.string() + ".inp");
  const std::vector<std::vector<TokenId>> expected = ids_of(path.string() + ".out");
  ASSERT_EQ(texts.size(), expected.size()) << path;
  const GgufKeys keys(header, path.string());
  const GgufPatterns* const patterns = find_gguf_patterns(keys, *find_gguf_model(keys));
  std::size_t same = 0, normalised = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string normal = texts[i];
    unicode_normalizer(NormalForm::kNfc)->normalize(normal);
    // llama.cpp does not normalise where the model's own tokenizer does, and its ids give the text as it was.
    if (patterns != nullptr && patterns->nfc && normal != texts[i] &&
        tokenizer->decode(expected[i], ShowSpecial::kYes) == texts[i]) {
      EXPECT_EQ(tokenizer->encode(texts[i], AddSpecial::kNo), tokenizer->encode(normal, AddSpecial::kNo));
      ++normalised;
      continue;
    }
    const std::vector<TokenId> found = tokenizer->encode(texts[i], AddSpecial::kNo);
    EXPECT_EQ(found, expected[i]) << path.filename() << ": text " << i << ": " << texts[i];
    same += found == expected[i];
  }
  std::cout << "; " << same << " of " << texts.size() << " texts alike, " << normalised
            << " normalised here alone\n";
}

TEST(GgufVocabularies, GiveTheIdsOfTheReference) {
  const char* const directory = std::getenv("SLUICE_GGUF_VOCABULARIES");
  if (directory == nullptr)
    GTEST_SKIP() << "SLUICE_GGUF_VOCABULARIES names no directory of ggml-vocab-*.gguf";
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  ASSERT_FALSE(paths.empty()) << directory;
  std::ranges::sort(paths);
  for (const fs::path& path : paths) compare(path);
}

}  // namespace
}  // namespace sluice::tokenizer
