// The tokenizers of directories as keys of GGUF files, read back.
#include "tokenizer/export/gguf_tokenizer_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>

#include "base/error.h"
#include "base/files/file.h"
#include "store/source/gguf.h"
#include "tokenizer/export/tokenizer_directory.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/sentencepiece/sentencepiece_model.h"
#include "tokenizer/test_files.h"
#include "tokenizer/tokenizer_json.h"

namespace sluice::tokenizer {
namespace {

using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Written = std::vector<std::pair<std::string, store::GgufWritten>>;

// What the Error of this kind says.
std::string refusal(const std::function<void()>& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

const std::string kFable = "models/fable-moe-18m";

// The header as a reader of a file finds it: written, and read again.
store::GgufHeader header_of(const Written& keys, const TemporaryDirectory& directory) {
  store::GgufPlan plan;
  plan.keys = keys;
  return store::read_gguf(InputFile::open(directory.write("keys.gguf", store::lay_out_gguf(plan).header)));
}

template <class Value>
const Value& value_of(const Written& keys, std::string_view name) {
  for (const auto& [own, value] : keys)
    if (own == name) return std::get<Value>(value);
  throw std::out_of_range(std::string(name));
}

// A tokenizer_config.json that names the special pieces of a tokenizer.model, as published ones do.
std::string config_of_pieces(std::string_view model) {
  const SentencePieceModel pieces = read_sentencepiece_model(model, "tokenizer.model");
  Json config = {{"tokenizer_class", "LlamaTokenizer"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}};
  for (TokenId id = 0; id < pieces.size(); ++id) {
    const PieceType type = pieces.types[static_cast<std::size_t>(id)];
    const bool defined = type == PieceType::kUserDefined;
    if (type != PieceType::kControl && type != PieceType::kUnknown && !defined) continue;
    config["added_tokens_decoder"][std::to_string(id)] = {{"content", std::string(pieces.content(id))},
                                                          {"special", !defined}};
  }
  return config.dump();
}

void write_tokenizer(const TemporaryDirectory& directory, const std::string& golden) {
  if (golden == "qwen2_vocab_merges") return test::write_qwen2_files(directory);
  const std::string file = test::golden(golden)["file"].get<std::string>();
  const bool json = file.find(".json") != file.npos;
  const std::string content =
      file.ends_with(".zst") ? test::unpack_zstd(file) : read_text_file(test::source_path(file), 64 * kMiB);
  directory.write(json ? "tokenizer.json" : "tokenizer.model", content);
  if (!json) directory.write("tokenizer_config.json", config_of_pieces(content));
  if (golden == "fable")
    directory.write("tokenizer_config.json",
                    read_text_file(test::source_path(kFable + "/tokenizer_config.json"), kMiB));
}

struct Source {
  const char* golden;
  const char* model;
  const char* pre;
};

class ExportedTokenizer : public testing::TestWithParam<Source> {};

TEST_P(ExportedTokenizer, GivesTheIdsAndTextsOfItsSource) {
  const TemporaryDirectory directory;
  write_tokenizer(directory, GetParam().golden);
  const auto source = load_tokenizer(directory.path());
  const auto rows = static_cast<TokenId>(source->vocab_size() + 7);
  const Written keys = gguf_tokenizer_keys(directory.path(), rows);
  EXPECT_EQ(value_of<std::string>(keys, "tokenizer.ggml.model"), GetParam().model);
  EXPECT_EQ(value_of<std::string>(keys, "tokenizer.ggml.pre"), GetParam().pre);
  const auto written = load_gguf_tokenizer(header_of(keys, directory), "keys.gguf", rows);
  ASSERT_NE(written, nullptr);
  const auto unknown = source->id_of("<unk>");  // whose text is the reader's own affair
  const auto compare = [&](const std::string& text) {
    for (const AddSpecial add : {AddSpecial::kNo, AddSpecial::kYes})
      ASSERT_EQ(written->encode(text, add), source->encode(text, add)) << text;
    const std::vector<TokenId> ids = source->encode(text, AddSpecial::kNo);
    if (unknown && std::ranges::find(ids, *unknown) != ids.end()) return;
    ASSERT_EQ(written->decode(ids, ShowSpecial::kNo), source->decode(ids, ShowSpecial::kNo)) << text;
  };
  const Json golden = test::golden(GetParam().golden);
  ASSERT_GT(golden["encode"].size(), 100u);
  for (const Json& item : golden["encode"]) {
    const auto& text = item["text"].get_ref<const std::string&>();
    compare(text);
    if (GetParam().model != std::string_view("gpt2")) continue;  // the reference had no tokenizer_config.json
    EXPECT_EQ(written->encode(text, AddSpecial::kNo), item["ids"].get<std::vector<TokenId>>()) << text;
  }
  const std::uint64_t seed = 20261127;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int part = 0; part < 8; ++part)
      text += source->decode(std::vector<TokenId>{static_cast<TokenId>(random() % source->vocab_size())},
                             ShowSpecial::kYes);
    compare(text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExportedTokenizer,
                         testing::Values(Source{"fable", "gpt2", "qwen2"},
                                         Source{"qwen2_vocab_merges", "gpt2", "qwen2"},
                                         Source{"llama3", "gpt2", "llama-bpe"},
                                         Source{"mistral_v1", "llama", "default"},
                                         Source{"mistral_v3", "llama", "default"}),
                         [](const auto& info) { return std::string(info.param.golden); });

TEST(GgufTokenizerKeys, NameTypesIdsAndRowsWithoutAToken) {
  const Written keys = gguf_tokenizer_keys(test::source_path(kFable), 6403);
  const auto& tokens = value_of<std::vector<std::string>>(keys, "tokenizer.ggml.tokens");
  const auto& types = value_of<std::vector<std::int32_t>>(keys, "tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 6403u);
  ASSERT_EQ(types.size(), 6403u);
  EXPECT_EQ(tokens[6397], "<|endoftext|>");
  EXPECT_EQ(tokens[6399], "<|im_end|>");
  EXPECT_EQ(tokens[6400], "[PAD6400]");
  EXPECT_EQ(std::vector(types.end() - 7, types.end()), (std::vector<std::int32_t>{1, 3, 3, 3, 5, 5, 5}));
  EXPECT_EQ(value_of<std::vector<std::string>>(keys, "tokenizer.ggml.merges").size(), 6141u);
  EXPECT_EQ(value_of<std::uint32_t>(keys, "tokenizer.ggml.eos_token_id"), 6397u);
  EXPECT_EQ(value_of<std::uint32_t>(keys, "tokenizer.ggml.padding_token_id"), 6397u);
  EXPECT_FALSE(value_of<bool>(keys, "tokenizer.ggml.add_bos_token"));
  EXPECT_THROW(value_of<std::uint32_t>(keys, "tokenizer.ggml.bos_token_id"), std::out_of_range);
}

// A small tokenizer.json of byte-level BPE, whose vocabulary has a token for each byte.
Json small_json() {
  const std::string file = "tests/data/tokenizers/synthetic/llama3.json";
  return parse_json(read_text_file(test::source_path(file), kMiB), file);
}
void add_token(Json& json, Json token) {
  token["id"] = 706 + json["added_tokens"].size();
  json["added_tokens"].push_back(std::move(token));
}
constexpr TokenId kRows = 720;

TEST(GgufTokenizerKeys, SayWhatIsAddedAroundAText) {
  Json json = small_json();
  const auto end = json["added_tokens"][0]["id"];
  json["post_processor"] = parse_json(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "B", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"B": {"id": "B", "ids": [0], "tokens": ["B"]}}})",
      "post_processor");
  json["post_processor"]["special_tokens"]["B"]["ids"][0] = end;
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", json.dump());
  const Written keys = gguf_tokenizer_keys(directory.path(), kRows);
  EXPECT_TRUE(value_of<bool>(keys, "tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(value_of<bool>(keys, "tokenizer.ggml.add_eos_token"));
  EXPECT_EQ(value_of<std::uint32_t>(keys, "tokenizer.ggml.bos_token_id"), end.get<std::uint32_t>());
  directory.write("tokenizer_config.json", R"({"bos_token": "a"})");
  EXPECT_THAT(refusal([&] { gguf_tokenizer_keys(directory.path(), kRows); }, ErrorKind::kUnsupported),
              HasSubstr("adds another token than the one that its files name"));
}

TEST(GgufTokenizerKeys, PiecesThatAreTokensDecideOverTheName) {
  Json json = small_json();
  json["model"]["ignore_merges"] = false;
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", json.dump());
  EXPECT_EQ(value_of<std::string>(gguf_tokenizer_keys(directory.path(), kRows), "tokenizer.ggml.pre"),
            "dbrx");
}

TEST(GgufTokenizerKeys, HoldTheTemplatesOfChats) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", small_json().dump());
  directory.write("chat_template.jinja", "{{ messages[0].content }}");
  std::filesystem::create_directory(directory.path() + "/additional_chat_templates");
  directory.write("additional_chat_templates/tool_use.jinja", "{{ tools }}");
  const store::GgufHeader header = header_of(gguf_tokenizer_keys(directory.path(), kRows), directory);
  const GgufSpecials specials = read_gguf_specials(header, "keys.gguf");
  EXPECT_EQ(specials.chat_template, "{{ messages[0].content }}");
  using Named = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(specials.named_templates, (Named{{"tool_use", "{{ tools }}"}}));
  ASSERT_NE(header.find("tokenizer.chat_templates"), nullptr);
  EXPECT_EQ(std::get<std::vector<std::string>>(*header.find("tokenizer.chat_templates")),
            std::vector<std::string>{"tool_use"});
}

// Published directories have both files. That of merges on characters cannot be written.
TEST(GgufTokenizerKeys, ATokenizerModelIsTakenBesideATokenizerJsonOfItsPieces) {
  const TemporaryDirectory directory;
  write_tokenizer(directory, "mistral_v1");
  const Written alone = gguf_tokenizer_keys(directory.path(), 32000);
  const SentencePieceModel pieces = read_sentencepiece_model(
      read_text_file(directory.path() + "/tokenizer.model", 64 * kMiB), "tokenizer.model");
  Json json = {{"model", {{"type", "BPE"}, {"byte_fallback", true}, {"merges", Json::array()}}}};
  for (TokenId id = 0; id < pieces.size(); ++id) json["model"]["vocab"][std::string(pieces.content(id))] = id;
  directory.write("tokenizer.json", json.dump());
  EXPECT_EQ(gguf_tokenizer_keys(directory.path(), 32000), alone);
  json["model"]["vocab"].erase(std::string(pieces.content(300)));
  json["model"]["vocab"]["another"] = 300;
  directory.write("tokenizer.json", json.dump());
  EXPECT_THAT(refusal([&] { gguf_tokenizer_keys(directory.path(), 32000); }, ErrorKind::kUnsupported),
              HasSubstr("another vocabulary than the tokenizer.json beside it"));
}

// DeepSeek-V2 cuts digits one by one, which its name in files does not. That is the same where no rule joins
// numbers.
class NumbersOneByOne : public ::testing::Test {
 protected:
  using Rules = std::vector<std::pair<std::string, std::string>>;

  NumbersOneByOne() : deepseek_(parse_json(read_text_file(test::source_path(kFile), kMiB), kFile)) {}
  // The tokenizer with these rules instead of its own, whose parts are tokens of it.
  Json with(const Rules& rules) const {
    Json json = deepseek_;
    json["added_tokens"] = Json::array();
    json["model"]["merges"] = Json::array();
    for (const auto& [left, right] : rules) {
      Json& vocabulary = json["model"]["vocab"];
      const auto next = vocabulary.size();
      if (!vocabulary.contains(left + right)) vocabulary[left + right] = next;
      json["model"]["merges"].push_back(Json::array({left, right}));
    }
    return json;
  }
  static Written keys_of(const Json& json) {
    const TemporaryDirectory directory;
    directory.write("tokenizer.json", json.dump());
    return gguf_tokenizer_keys(directory.path(), 1100);
  }
  static std::vector<TokenId> ids_of(Json json, bool one_by_one, const std::string& text) {
    json["pre_tokenizer"]["pretokenizers"][5]["individual_digits"] = one_by_one;
    return load_tokenizer_json(json.dump(), "tokenizer.json")->encode(text, AddSpecial::kNo);
  }
  void expect_refusal(const Json& json, const std::string& number) const {
    EXPECT_NE(ids_of(json, true, number), ids_of(json, false, number)) << number;
    EXPECT_THAT(refusal([&] { keys_of(json); }, ErrorKind::kUnsupported),
                HasSubstr("how the tokenizer cuts text"));
  }
  void expect_name(const Json& json, const std::string& number) const {
    EXPECT_EQ(ids_of(json, true, number), ids_of(json, false, number)) << number;
    EXPECT_EQ(value_of<std::string>(keys_of(json), "tokenizer.ggml.pre"), "deepseek-llm");
  }

  static inline const std::string kFile = "tests/data/tokenizers/synthetic/deepseek.json";
  const Json deepseek_;
};

// Characters stand for bytes: U+00C2 and U+00BD are the bytes of the number U+00BD; byte E4 begins no number.
TEST_F(NumbersOneByOne, HaveTheNameOfNumbersTogetherWhereNoRuleJoinsThem) {
  const std::string first = "\xC3\x82", last = "\xC2\xBD", two_halves = "\xC2\xBD\xC2\xBD";
  expect_name(with({}), "12" + two_halves);
  expect_name(with({{"+", "1"}, {last, "\xC3\xA4"}}), "+112" + two_halves);
  Rules whole_first;  // all numbers that byte C2 begins
  for (const char* const end : {"\xC2\xB2", "\xC2\xB3", "\xC2\xB9", "\xC2\xBC", "\xC2\xBD", "\xC2\xBE"})
    whole_first.emplace_back(first, end);
  whole_first.emplace_back(last, first);
  expect_name(with(whole_first), two_halves);
  expect_refusal(with({{last, first}, {first, last}}), two_halves);
  expect_refusal(with({{"1", "2"}}), "12");
  expect_refusal(with({{"+", "1"}, {"+1", "2"}, {"3", "4"}}), "34");
  expect_name(with({{"+", "1"}, {"+1", "2"}}), "+12");
  expect_refusal(deepseek_, "\xE0\xBB\x95\xE0\xBB\x95");  // a Lao digit, twice
}

struct Unsayable {
  const char* name;
  const char* says;
  void (*change)(Json&);
};
const Unsayable kUnsayable[] = {
    {"Pattern", "how the tokenizer cuts text; expected patterns that docs/formats.md lists",
     [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[a-z]+"; }},
    {"Behavior", "stages that cut by a pattern and keep all",
     [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }},
    {"BlankBefore", "pre_tokenizer.add_prefix_space",
     [](Json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }},
    {"Normalizer", ": normalizer: no GGUF file",
     [](Json& j) {
       j["normalizer"] = {{"type", "NFKC"}};
     }},
    {"NormalizerOfAnotherFamily", "found NFC, ignore_merges true",
     [](Json& j) {
       j["normalizer"] = {{"type", "NFC"}};
     }},
    {"Decoder", ": decoder: no GGUF file", [](Json& j) { j["decoder"] = nullptr; }},
    {"NoBytes", "what this tokenizer merges", [](Json& j) { j["pre_tokenizer"] = nullptr; }},
    {"TextBeside", "added token \"<|endoftext|>\"", [](Json& j) { j["added_tokens"][0]["lstrip"] = true; }},
    {"Order", "in which order added tokens are found",
     [](Json& j) {
       add_token(j, {{"content", "a>"}, {"normalized", false}});
       add_token(j, {{"content", "<a"}, {"normalized", true}});
     }},
    {"SeveralAround", "several tokens are added at one end",
     [](Json& j) {
       j["post_processor"] = parse_json(
           R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "B", "type_id": 0}},
           {"Sequence": {"id": "A", "type_id": 0}}],
           "special_tokens": {"B": {"id": "B", "ids": [1, 2], "tokens": ["B", "C"]}}})",
           "post_processor");
     }},
    {"EndThatIsNotSpecial", "for the end of an answer",
     [](Json& j) {
       j["model"]["vocab"]["<|im_end|>"] = 706;
       j["added_tokens"][0]["id"] = 707;
     }},
    {"BlankInARule", "a merge rule whose tokens have blanks",
     [](Json& j) {
       j["model"]["vocab"]["a "] = 706;
       j["model"]["vocab"]["a b"] = 707;
       j["added_tokens"][0]["id"] = 708;
       j["model"]["merges"].push_back(Json::array({"a ", "b"}));
     }},
    {"ByteWithoutAToken", "a byte becomes the unknown token",
     [](Json& j) {
       j["model"]["vocab"]["another"] = j["model"]["vocab"]["\xC4\x80"];  // the id of byte 0
       j["model"]["vocab"].erase("\xC4\x80");
       j["model"]["unk_token"] = "a";
     }},
    // In a file it is a token like others, so a piece of these bytes becomes it.
    {"AddedTokenOfBytes", "gives other ids where a GGUF file holds it",
     [](Json& j) {
       add_token(j, {{"content", "\xC3\x83\xC2\xA9"}, {"normalized", false}});
     }},
};

class UnsayableTokenizer : public testing::TestWithParam<Unsayable> {};

TEST_P(UnsayableTokenizer, IsRefused) {
  const TemporaryDirectory directory;
  Json json = small_json();
  directory.write("tokenizer.json", json.dump());
  EXPECT_NO_THROW(gguf_tokenizer_keys(directory.path(), kRows));
  GetParam().change(json);
  directory.write("tokenizer.json", json.dump());
  EXPECT_NO_THROW(load_tokenizer(directory.path()));
  EXPECT_THAT(refusal([&] { gguf_tokenizer_keys(directory.path(), kRows); }, ErrorKind::kUnsupported),
              AllOf(HasSubstr(GetParam().says), HasSubstr(directory.path()), HasSubstr("--format out")));
}

INSTANTIATE_TEST_SUITE_P(All, UnsayableTokenizer, testing::ValuesIn(kUnsayable),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GgufTokenizerKeys, AddedTokensOfNormalisedTextAreRefusedWhereNormalisingChangesThem) {
  const std::string file = kFable + "/tokenizer.json";
  const Json fable = parse_json(read_text_file(test::source_path(file), 64 * kMiB), file);
  const auto keys_with = [&](const char* content) {
    Json json = fable;
    json["added_tokens"].push_back({{"id", 6400}, {"content", content}, {"normalized", true}});
    const TemporaryDirectory directory;
    directory.write("tokenizer.json", json.dump());
    gguf_tokenizer_keys(directory.path(), 6401);
  };
  for (const char* const safe : {"  ", "|||NAME|||"}) EXPECT_NO_THROW(keys_with(safe)) << safe;
  for (const char* const changed : {"[K]", "name", "\xC3\xA9!", "a<"})
    EXPECT_THAT(refusal([&] { keys_with(changed); }, ErrorKind::kUnsupported),
                HasSubstr("found in normalised text"))
        << changed;
}

TEST(GgufTokenizerKeys, OtherKindsAreRefused) {
  for (const auto& [golden, says] : {std::pair{"unigram", "what this tokenizer merges"},
                                     {"metaspace", "what this tokenizer merges"},
                                     {"deepseek", "how the tokenizer cuts text"},
                                     {"olmoe", "found NFC, ignore_merges false"},
                                     {"llama_spm", "what this tokenizer merges"},
                                     {"sp_collapse", "what the tokenizer does with blanks"}}) {
    const TemporaryDirectory directory;
    write_tokenizer(directory, golden);
    EXPECT_THAT(refusal([&] { gguf_tokenizer_keys(directory.path(), 64000); }, ErrorKind::kUnsupported),
                HasSubstr(says))
        << golden;
  }
}

TEST(TokenizerDirectory, HasATokenizerThatFitsTheModel) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal([&] { load_tokenizer_for(directory.path(), kRows); }, ErrorKind::kNotFound),
              HasSubstr("found none of them"));
  EXPECT_THAT(refusal([&] { load_tokenizer_for(directory.path() + "/no", kRows); }, ErrorKind::kNotFound),
              HasSubstr("found nothing"));
  const std::string file = directory.write("tokenizer.json", small_json().dump());
  EXPECT_THAT(refusal([&] { load_tokenizer_for(file, kRows); }, ErrorKind::kNotFound),
              HasSubstr("found a file"));
  const auto tokens = static_cast<TokenId>(load_tokenizer(directory.path())->vocab_size());
  EXPECT_NE(load_tokenizer_for(directory.path(), tokens), nullptr);
  EXPECT_THAT(refusal([&] { load_tokenizer_for(directory.path(), tokens - 1); }, ErrorKind::kUsage),
              AllOf(HasSubstr("--tokenizer: the tokenizer has more tokens"), HasSubstr(directory.path())));
  EXPECT_THROW(gguf_tokenizer_keys(directory.path(), tokens - 1), Error);
}

TEST(TokenizerDirectory, ItsFilesAreThoseOfTokenizerAndTemplates) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/additional_chat_templates");
  for (const char* const name :
       {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "chat_template.jinja", "config.json",
        "generation_config.json", "model.safetensors", "README.md", "merges.txt",
        "additional_chat_templates/rag.jinja", "additional_chat_templates/notes.txt"})
    directory.write(name, name);
  std::vector<std::string> names;
  for (const TokenizerFile& file : read_tokenizer_files(directory.path())) {
    names.push_back(file.name);
    EXPECT_EQ(file.content, file.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"additional_chat_templates/rag.jinja", "chat_template.jinja",
                                             "merges.txt", "tokenizer.json", "tokenizer.model",
                                             "tokenizer_config.json"}));
}

}  // namespace
}  // namespace sluice::tokenizer
