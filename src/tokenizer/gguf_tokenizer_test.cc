#include "tokenizer/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <stdexcept>

#include "base/error.h"
#include "base/files/file.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/compiled_tokenizer.h"
#include "tokenizer/store_tokenizer.h"
#include "tokenizer/test_files.h"
#include "tokenizer/test_gguf.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer_json.h"

namespace sluice::tokenizer {
namespace {

using test::gguf_of;
using test::set;
using test::small_gguf;

std::unique_ptr<Tokenizer> load(const store::GgufHeader& header) {
  return load_gguf_tokenizer(header, "m.gguf");
}

template <class T>
T& value_of(store::GgufHeader& header, std::string_view key) {
  for (store::GgufKey& own : header.keys)
    if (own.name == key) return std::get<T>(own.value);
  throw std::out_of_range(std::string(key));
}
std::vector<std::string>& tokens_of(store::GgufHeader& header) {
  return value_of<std::vector<std::string>>(header, "tokenizer.ggml.tokens");
}

// Ids of Hugging Face tokenizers and of sentencepiece (tools/oracle/make_gguf_golden.py).
TEST(GgufTokenizer, GivesTheIdsOfTheLibrariesOnSmallVocabularies) {
  const std::string file = "tests/golden/tokenizers/gguf.json";
  const Json golden = parse_json(read_text_file(test::source_path(file), kMiB), file);
  for (const auto& [name, pairs] : golden.items()) {
    const auto tokenizer = load(small_gguf(name));
    ASSERT_NE(tokenizer, nullptr) << name;
    ASSERT_GE(pairs.size(), 20u) << name;
    for (const Json& pair : pairs) {
      const auto& text = pair[0].get_ref<const std::string&>();
      const auto ids = pair[1].get<std::vector<TokenId>>();
      EXPECT_EQ(tokenizer->encode(text, AddSpecial::kNo), ids) << name << ": " << text;
    }
  }
}

// A word, a number, signs, white space, other scripts; combining marks only where the text is normalised.
std::string random_text(std::mt19937_64& random, bool marks) {
  constexpr const char* kParts[] = {
      "the", " fox", "Ran",    "'s",   "'LL", "12345", "7",        " ",          "  ",
      "\n",  "\r\n", "\t",     "?!",   "...", "/",     "=",        "{}",         "日本",
      "é",   "Ü",    "Привет", "한국", "😀",   "½",     "\xC2\xA0", "<|im_end|>", "<|endoftext|>",
      "x",   "Z",    "_"};
  std::string text;
  for (std::uint64_t parts = random() % 24; parts > 0; --parts) text += kParts[random() % std::size(kParts)];
  if (marks && random() % 2 == 0) text += "e\xCC\x81 a\xCC\xA3\xCC\x81";
  return text;
}

struct Pair {
  const char* golden;
  const char* pre;
  bool nfc;  // both normalise
};

void expect_same(const Tokenizer& ours, const Tokenizer& theirs, const std::string& text) {
  const auto ids = theirs.encode(text, AddSpecial::kNo);
  ASSERT_EQ(ours.encode(text, AddSpecial::kNo), ids) << text;
  for (const ShowSpecial special : {ShowSpecial::kNo, ShowSpecial::kYes})
    ASSERT_EQ(ours.decode(ids, special), theirs.decode(ids, special)) << text;
}

class GgufOfTokenizerJson : public testing::TestWithParam<Pair> {};

TEST_P(GgufOfTokenizerJson, AgreesWithIt) {
  const Json golden = test::golden(GetParam().golden);
  const std::string file = golden["file"].get<std::string>();
  const std::string text =
      file.ends_with(".zst") ? test::unpack_zstd(file) : read_text_file(test::source_path(file), 64 * kMiB);
  Json json = parse_json(text, file, {.max_bytes = 64 * kMiB});
  const auto ours = load(gguf_of(json, GetParam().pre));
  if (!GetParam().nfc) json["normalizer"] = nullptr;  // the file cannot say that a text is normalised
  const auto theirs = load_tokenizer_json(json.dump(), file);
  ASSERT_NE(ours, nullptr);
  for (const Json& item : golden["encode"]) expect_same(*ours, *theirs, item["text"].get<std::string>());
  const std::uint64_t seed = 20261126;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) expect_same(*ours, *theirs, random_text(random, GetParam().nfc));
}

INSTANTIATE_TEST_SUITE_P(All, GgufOfTokenizerJson,
                         testing::Values(Pair{"fable", "qwen2", true}, Pair{"qwen3", "qwen2", true},
                                         Pair{"olmoe", "olmo", false},
                                         Pair{"deepseek", "deepseek-llm", false},
                                         Pair{"llama3", "llama-v3", false}),
                         [](const auto& info) { return std::string(info.param.golden); });

// The pattern as o200k's tokenizer.json spells it.
TEST(GgufTokenizer, CutsAsO200k) {
  const std::string file = "tests/data/tokenizers/synthetic/o200k.json";
  Json json = parse_json(read_text_file(test::source_path(file), 64 * kMiB), file);
  Json split = json["pre_tokenizer"]["pretokenizers"][1];
  ASSERT_NE(split["pattern"]["Regex"].get<std::string>().find("p{Lt}"), std::string::npos);
  split["behavior"] = "Isolated";
  split["invert"] = false;
  json["pre_tokenizer"]["pretokenizers"] = Json::array({split, json["pre_tokenizer"]["pretokenizers"][3]});
  json["normalizer"] = nullptr;
  json["decoder"] = {{"type", "ByteLevel"}};
  const auto ours = load(gguf_of(json, "gpt-4o"));
  const auto theirs = load_tokenizer_json(json.dump(), file);
  const std::uint64_t seed = 20261127;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) expect_same(*ours, *theirs, random_text(random, true));
}

TEST(GgufTokenizer, AgreesWithASentencePieceModel) {
  const std::string data = test::unpack_zstd("tests/data/tokenizers/mistral.tokenizer.model.v1.zst");
  const SentencePieceModel model = read_sentencepiece_model(data, "tokenizer.model");
  const auto ours = load(gguf_of(model));
  const auto theirs = test::load_golden_tokenizer("mistral_v1");
  const Json golden = test::golden("mistral_v1");
  for (const Json& item : golden["encode"]) {
    const auto& text = item["text"].get_ref<const std::string&>();
    // A file names its control tokens; a model alone leaves them to tokenizer_config.json.
    if (text.find("<s>") != std::string::npos || text.find("</s>") != std::string::npos ||
        text.find("<unk>") != std::string::npos)
      continue;
    const auto ids = theirs->encode(text, AddSpecial::kYes);
    EXPECT_EQ(ours->encode(text, AddSpecial::kYes), ids) << text;
    EXPECT_EQ(ours->decode(ids, ShowSpecial::kNo), theirs->decode(ids, ShowSpecial::kNo)) << text;
  }
  EXPECT_EQ(ours->encode("</s>", AddSpecial::kNo), std::vector<TokenId>{2});
}

TEST(GgufTokenizer, PutsABlankBeforeATextUnlessToldNot) {
  store::GgufHeader header = small_gguf("pieces");
  const auto with = load(header)->encode("the fox", AddSpecial::kNo);
  EXPECT_EQ(load(header)->encode("the fox", AddSpecial::kYes).front(), 1);
  set(header, "tokenizer.ggml.add_space_prefix", false);
  set(header, "tokenizer.ggml.add_eos_token", true);
  const auto without = load(header)->encode("the fox", AddSpecial::kNo);
  EXPECT_NE(without, with);
  EXPECT_EQ(load(header)->encode(" the fox", AddSpecial::kNo), with);
  EXPECT_EQ(load(header)->encode("the fox", AddSpecial::kYes).back(), 2);
}

TEST(GgufTokenizer, AddsBosAsPatternAndKeysSay) {
  store::GgufHeader header = small_gguf("bytes");
  const TokenId bos = *read_gguf_specials(header, "m.gguf").bos;
  const auto begins_with_bos = [&] { return load(header)->encode("a", AddSpecial::kYes).front() == bos; };
  EXPECT_FALSE(begins_with_bos());
  set(header, "tokenizer.ggml.add_bos_token", true);
  EXPECT_TRUE(begins_with_bos());
  test::remove(header, "tokenizer.ggml.add_bos_token");
  EXPECT_FALSE(begins_with_bos());
  set(header, "tokenizer.ggml.pre", std::string("llama-bpe"));
  EXPECT_TRUE(begins_with_bos());
  store::GgufHeader raw = small_gguf("raw");
  set(raw, "tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(load(raw)->encode("a", AddSpecial::kYes).front(), 2);
}

// Without rules the neighbours whose join has the lowest id are joined first.
TEST(GgufTokenizer, IdsAreRanksInAFileWithoutRules) {
  store::GgufHeader header;
  set(header, "tokenizer.ggml.model", std::string("gpt2"));
  set(header, "tokenizer.ggml.pre", std::string("kimi-k2"));
  set(header, "tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c", "bc", "ab", "abc"});
  set(header, "tokenizer.ggml.token_type", std::vector<std::int64_t>(6, 1));
  EXPECT_EQ(load(header)->encode("abc", AddSpecial::kNo), std::vector<TokenId>{5});
  EXPECT_EQ(load(header)->encode("abcb", AddSpecial::kNo), (std::vector<TokenId>{5, 1}));
  EXPECT_EQ(load(header)->encode("aba", AddSpecial::kNo), (std::vector<TokenId>{4, 0}));
  set(header, "tokenizer.ggml.pre", std::string("gpt-2"));
  EXPECT_THROW(load(header), Error);
}

TEST(GgufTokenizer, RowsWithoutATokenGiveNoText) {
  const store::GgufHeader header = small_gguf("bytes");
  const auto tokenizer = load(header);
  const auto tokens = std::get<std::vector<std::string>>(*header.find("tokenizer.ggml.tokens"));
  const auto last = static_cast<TokenId>(tokens.size() - 1);
  ASSERT_TRUE(tokens.back().starts_with("[PAD"));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{last}, ShowSpecial::kYes), "");
  EXPECT_EQ(tokenizer->id_of(tokens.back()), std::nullopt);
  const auto more = load_gguf_tokenizer(header, "m.gguf", last + 8);
  EXPECT_EQ(more->decode(std::vector<TokenId>{last + 7}, ShowSpecial::kYes), "");
}

TEST(GgufTokenizer, CanBeCompiledIntoAStore) {
  for (const char* const name : {"bytes", "raw", "pieces"}) {
    SCOPED_TRACE(name);
    store::GgufHeader header = small_gguf(name);
    set(header, "tokenizer.ggml.add_bos_token", true);
    tokens_of(header).emplace_back();  // a row without a token
    value_of<std::vector<std::int64_t>>(header, "tokenizer.ggml.token_type").push_back(1);
    if (header.find("tokenizer.ggml.scores") != nullptr)
      value_of<std::vector<double>>(header, "tokenizer.ggml.scores").push_back(0.0);
    const auto parsed = load(header);
    std::string description;
    const std::string file =
        store::write_tables(kTokenizerTables, 7, written_tables(parsed->compile(), description));
    const auto compiled =
        load_compiled_tokenizer(store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "t.bin"));
    const std::string text = "Once upon\n\n a <|im_end|><eos> time 12 \xE4\xB8\xAD";
    const auto ids = parsed->encode(text, AddSpecial::kYes);
    EXPECT_EQ(compiled->encode(text, AddSpecial::kYes), ids);
    for (TokenId id = 0; id < static_cast<TokenId>(tokens_of(header).size()); ++id)
      ASSERT_EQ(compiled->decode(std::vector<TokenId>{id}, ShowSpecial::kYes),
                parsed->decode(std::vector<TokenId>{id}, ShowSpecial::kYes))
          << id;
  }
}

TEST(GgufTokenizer, ComesWithACheckpoint) {
  const std::string path = test::source_path("tests/fuzz/corpus/gguf_tokenizer/bytes.gguf");
  const auto tokenizer = load_tokenizer_of(*store::open_checkpoint(path));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("the fox", AddSpecial::kNo),
            load(small_gguf("bytes"))->encode("the fox", AddSpecial::kNo));
}

TEST(GgufTokenizer, PrefersAWholeTokenizerJson) {
  store::GgufHeader header = small_gguf("pieces");
  set(header, "tokenizer.huggingface.json",
      std::string(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})"));
  EXPECT_EQ(load(header)->encode("abb", AddSpecial::kNo), (std::vector<TokenId>{2, 1}));
}

TEST(GgufTokenizer, FilesMayHaveNone) {
  store::GgufHeader header;
  EXPECT_EQ(load(header), nullptr);
  for (const char* const model : {"none", "no_vocab"}) {
    set(header, "tokenizer.ggml.model", std::string(model));
    EXPECT_EQ(load(header), nullptr);
  }
  EXPECT_FALSE(read_gguf_specials(header, "m.gguf").eos);
}

struct Refused {
  const char* name;
  const char* file;
  ErrorKind kind;
  const char* says;  // stands in the message
  void (*change)(store::GgufHeader&);
};

std::vector<std::string>& merges_of(store::GgufHeader& header) {
  return value_of<std::vector<std::string>>(header, "tokenizer.ggml.merges");
}
using Header = store::GgufHeader;

constexpr auto kInvalid = ErrorKind::kInvalid;
constexpr auto kUnsupported = ErrorKind::kUnsupported;
const Refused kRefused[] = {
    {"UnknownModel", "bytes", kUnsupported, "m.gguf: tokenizer.ggml.model",
     [](Header& h) { set(h, "tokenizer.ggml.model", std::string("bert")); }},
    {"UnknownPattern", "bytes", kUnsupported, "m.gguf: tokenizer.ggml.pre",
     [](Header& h) { set(h, "tokenizer.ggml.pre", std::string("default")); }},
    {"NoPattern", "bytes", kUnsupported, "no such key",
     [](Header& h) { test::remove(h, "tokenizer.ggml.pre"); }},
    {"NoTokens", "raw", kInvalid, "tokenizer.ggml.tokens",
     [](Header& h) { test::remove(h, "tokenizer.ggml.tokens"); }},
    {"EmptyTokens", "raw", kInvalid, "an empty array", [](Header& h) { tokens_of(h).clear(); }},
    {"TokensOfAnotherType", "raw", kInvalid, "tokenizer.ggml.tokens",
     [](Header& h) { set(h, "tokenizer.ggml.tokens", std::string("a")); }},
    {"FewTypes", "raw", kInvalid, "tokenizer.ggml.token_type",
     [](Header& h) { set(h, "tokenizer.ggml.token_type", std::vector<std::int64_t>(3, 1)); }},
    {"NoTypes", "pieces", kInvalid, "no such key",
     [](Header& h) { test::remove(h, "tokenizer.ggml.token_type"); }},
    {"UnknownType", "raw", kInvalid, "tokenizer.ggml.token_type[0]",
     [](Header& h) {
       set(h, "tokenizer.ggml.token_type", std::vector<std::int64_t>(tokens_of(h).size(), 9));
     }},
    {"TwiceInBytes", "bytes", kInvalid, "tokenizer.ggml.tokens[8]",
     [](Header& h) { tokens_of(h)[8] = tokens_of(h)[7]; }},
    {"TwiceInPieces", "pieces", kInvalid, "tokenizer.ggml.tokens[300]",
     [](Header& h) { tokens_of(h)[300] = "<s>"; }},
    {"NotUtf8", "bytes", kInvalid, "tokenizer.ggml.tokens[5]", [](Header& h) { tokens_of(h)[5] = "\xFF"; }},
    {"LongControl", "raw", kInvalid, "tokenizer.ggml.tokens[0]",
     [](Header& h) { tokens_of(h)[0] = std::string(2000, 'x'); }},
    {"NoMerges", "raw", kInvalid, "tokenizer.ggml.merges",
     [](Header& h) { test::remove(h, "tokenizer.ggml.merges"); }},
    {"NoPair", "bytes", kInvalid, "tokenizer.ggml.merges[1]", [](Header& h) { merges_of(h)[1] = "ab"; }},
    {"HalfAPair", "bytes", kInvalid, "tokenizer.ggml.merges[1]", [](Header& h) { merges_of(h)[1] = "a "; }},
    {"PairOfNoTokens", "bytes", kInvalid, "tokenizer.ggml.merges[2]",
     [](Header& h) { merges_of(h)[2] = "qq zz"; }},
    {"BosOutside", "bytes", kInvalid, "tokenizer.ggml.bos_token_id",
     [](Header& h) { set(h, "tokenizer.ggml.bos_token_id", std::uint64_t{1} << 40); }},
    {"NegativeEos", "bytes", kInvalid, "tokenizer.ggml.eos_token_id",
     [](Header& h) { set(h, "tokenizer.ggml.eos_token_id", std::int64_t{-1}); }},
    {"AddsUnknownEos", "raw", kInvalid, "tokenizer.ggml.eos_token_id",
     [](Header& h) {
       test::remove(h, "tokenizer.ggml.eos_token_id");
       set(h, "tokenizer.ggml.add_eos_token", true);
     }},
    {"FewScores", "pieces", kInvalid, "tokenizer.ggml.scores",
     [](Header& h) { set(h, "tokenizer.ggml.scores", std::vector<double>(9)); }},
    {"ScoreIsNoNumber", "pieces", kInvalid, "tokenizer.ggml.scores[4]",
     [](Header& h) { value_of<std::vector<double>>(h, "tokenizer.ggml.scores")[4] = std::nan(""); }},
    {"ScoreTooLarge", "pieces", kInvalid, "tokenizer.ggml.scores[4]",
     [](Header& h) { value_of<std::vector<double>>(h, "tokenizer.ggml.scores")[4] = 1e200; }},
    {"ByteMissing", "pieces", kInvalid, "<0x07>",
     [](Header& h) {
       for (std::size_t i = 0; i < tokens_of(h).size(); ++i)
         if (tokens_of(h)[i] == "<0x07>") {
           value_of<std::vector<std::int64_t>>(h, "tokenizer.ggml.token_type")[i] = 1;
         }
     }},
    {"ByteOfNoByte", "pieces", kInvalid, "<0x00> to <0xFF>",
     [](Header& h) { value_of<std::vector<std::int64_t>>(h, "tokenizer.ggml.token_type")[400] = 6; }},
    {"UnknownIsAPiece", "pieces", kInvalid, "tokenizer.ggml.unknown_token_id",
     [](Header& h) { set(h, "tokenizer.ggml.unknown_token_id", std::uint64_t{400}); }},
    {"TemplateIsNoText", "pieces", kInvalid, "tokenizer.chat_template",
     [](Header& h) { set(h, "tokenizer.chat_template", true); }},
};

TEST(GgufTokenizer, RefusesBrokenKeysByName) {
  for (const Refused& refused : kRefused) {
    SCOPED_TRACE(refused.name);
    store::GgufHeader header = small_gguf(refused.file);
    refused.change(header);
    try {
      load(header);
      ADD_FAILURE() << "loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), refused.kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(refused.says), std::string::npos) << error.what();
      EXPECT_FALSE(error.fix_text().empty()) << error.what();
    }
  }
}

// Whatever becomes of a key, loading throws Error or gives a tokenizer that keeps its promises.
class Mutation {
 public:
  Mutation(store::GgufHeader& header, std::mt19937_64& random) : header_(header), random_(random) {}
  void apply() {
    store::GgufKey& key = header_.keys[random_() % header_.keys.size()];
    switch (random_() % 8) {
      case 0:
        return test::remove(header_, std::string(key.name));
      case 1:
        return void(key.value = header_.keys[random_() % header_.keys.size()].value);
      case 2:
        return void(key.value = std::int64_t{-1});
      default:
        std::visit([this](auto& value) { change(value); }, key.value);
    }
  }

 private:
  void change(bool& value) { value = !value; }
  void change(std::int64_t& value) { value = static_cast<std::int64_t>(random_() >> (random_() % 64)); }
  void change(std::uint64_t& value) { value = random_() >> (random_() % 64); }
  void change(double& value) { value = random_() % 2 == 0 ? -1e300 : std::nan(""); }
  void change(std::string& value) {
    constexpr const char* kTexts[] = {"gpt2",       "llama", "gemma4", "t5",  "qwen35",       "kimi-k2",
                                      "tekken",     "glm4",  "",       " ",   "\xFF",         "a",
                                      "<|im_end|>", "\n",    "<0x41>", "the", "\xE2\x96\x81", "a b"};
    value = kTexts[random_() % std::size(kTexts)];
  }
  void change(std::vector<bool>& values) { values.flip(); }
  template <class T>
  void change(std::vector<T>& values) {
    if (values.empty()) return;
    const std::size_t at = random_() % values.size();
    switch (random_() % 4) {
      case 0:
        values.resize(at);
        return;
      case 1:
        values.push_back(T(values[at]));
        return;
      case 2:
        std::swap(values[at], values[random_() % values.size()]);
        return;
      default:
        if constexpr (std::is_same_v<T, std::int64_t>)
          values[at] = static_cast<std::int64_t>(random_() % 8);
        else
          change(values[at]);
    }
  }

  store::GgufHeader& header_;
  std::mt19937_64& random_;
};

TEST(GgufTokenizer, MutatedKeysAreRefusedOrLoaded) {
  const std::uint64_t seed = 7;
  std::mt19937_64 random(seed);
  const store::GgufHeader originals[] = {small_gguf("bytes"), small_gguf("raw"), small_gguf("pieces")};
  int loaded = 0, refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", round " << round);
    store::GgufHeader header = originals[random() % std::size(originals)];
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) Mutation(header, random).apply();
    try {
      read_gguf_specials(header, "m.gguf");
      const auto tokenizer = load(header);
      if (tokenizer == nullptr) continue;
      const auto ids = tokenizer->encode("Hello 12\n\xE4\xB8\xAD <s> the fox<|im_end|>", AddSpecial::kYes);
      const std::string text = tokenizer->decode(ids, ShowSpecial::kYes);
      ASSERT_FALSE(find_invalid_utf8(text)) << text;
      ++loaded;
    } catch (const Error& error) {
      ASSERT_TRUE(error.kind() == kInvalid || error.kind() == kUnsupported) << error.what();
      ASSERT_NE(std::string(error.what()).find("m.gguf"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(loaded, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(GgufSpecials, EndsAreKeysAndKnownTexts) {
  store::GgufHeader header = small_gguf("bytes");
  const auto tokenizer = load(header);
  const TokenId end = *tokenizer->id_of("<|im_end|>"), text_end = *tokenizer->id_of("<|endoftext|>");
  GgufSpecials specials = read_gguf_specials(header, "m.gguf");
  EXPECT_EQ(specials.bos, text_end);
  EXPECT_NE(specials.eos, std::nullopt);
  std::vector<TokenId> expected = {end, text_end, *specials.eos};
  std::ranges::sort(expected);
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(specials.ends, expected);
  set(header, "tokenizer.ggml.eot_token_id", std::uint64_t{3});
  EXPECT_EQ(read_gguf_specials(header, "m.gguf").ends.front(), 3);
}

TEST(GgufSpecials, ATextThatEndsAnswersIsAControlToken) {
  store::GgufHeader header = small_gguf("bytes");
  auto& types = value_of<std::vector<std::int64_t>>(header, "tokenizer.ggml.token_type");
  std::ranges::replace(types, std::int64_t{3}, std::int64_t{1});
  const auto tokenizer = load(header);
  const TokenId end = *tokenizer->id_of("<|im_end|>");
  EXPECT_EQ(tokenizer->encode("<|im_end|>", AddSpecial::kNo), std::vector<TokenId>{end});
  EXPECT_TRUE(tokenizer->is_special(end));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->id_of("<|im_start|>")));
}

// As in gpt-oss, where <|end|> ends a message.
TEST(GgufSpecials, AnEndOfAMessageEndsNoAnswerBesideReturnAndCall) {
  store::GgufHeader header;
  set(header, "tokenizer.ggml.model", std::string("gpt2"));
  set(header, "tokenizer.ggml.pre", std::string("gpt-4o"));
  set(header, "tokenizer.ggml.tokens", std::vector<std::string>{"a", "<|return|>", "<|end|>", "<|call|>"});
  set(header, "tokenizer.ggml.token_type", std::vector<std::int64_t>{1, 3, 3, 3});
  set(header, "tokenizer.ggml.merges", std::vector<std::string>{});
  set(header, "tokenizer.ggml.eos_token_id", std::uint64_t{1});
  set(header, "tokenizer.ggml.eot_token_id", std::uint64_t{2});
  EXPECT_EQ(read_gguf_specials(header, "m.gguf").ends, (std::vector<TokenId>{1, 3}));
  tokens_of(header)[3] = "b";
  EXPECT_EQ(read_gguf_specials(header, "m.gguf").ends, (std::vector<TokenId>{1, 2}));
}

TEST(GgufSpecials, AbsentIdsAreTheModelsIfTheyAreControlTokens) {
  store::GgufHeader header = small_gguf("pieces");
  for (const char* const key : {"bos_token_id", "eos_token_id", "unknown_token_id"})
    test::remove(header, std::string("tokenizer.ggml.") + key);
  const GgufSpecials specials = read_gguf_specials(header, "m.gguf");
  EXPECT_EQ(specials.bos, 1);
  EXPECT_EQ(specials.eos, 2);
  EXPECT_TRUE(specials.add_bos);
  EXPECT_FALSE(specials.add_eos);
  EXPECT_EQ(load(header)->encode("a", AddSpecial::kYes).front(), 1);
  store::GgufHeader bytes = small_gguf("bytes");
  test::remove(bytes, "tokenizer.ggml.eos_token_id");  // 11 is a normal token of it
  EXPECT_EQ(read_gguf_specials(bytes, "m.gguf").eos, std::nullopt);
}

TEST(GgufSpecials, UnknownPatternsLeaveIdsAndTemplates) {
  store::GgufHeader header = small_gguf("bytes");
  set(header, "tokenizer.ggml.pre", std::string("of-tomorrow"));
  set(header, "tokenizer.chat_template.tool_use", std::string("{{ tools }}"));
  set(header, "tokenizer.chat_template.rag", std::string("{{ documents }}"));
  const GgufSpecials specials = read_gguf_specials(header, "m.gguf");
  EXPECT_TRUE(specials.eos);
  EXPECT_EQ(specials.chat_template, "{{ messages }}");
  using Named = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(specials.named_templates, (Named{{"rag", "{{ documents }}"}, {"tool_use", "{{ tools }}"}}));
}

}  // namespace
}  // namespace sluice::tokenizer
