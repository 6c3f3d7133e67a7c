#include "tokenizer/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/json/json_pointer.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Json kSmall = Json::parse(R"({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": null, "post_processor": null, "decoder": null,
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "abc": 4}, "merges": [["a", "b"], ["ab", "c"]]}})");

Json with(const std::string& pointer, Json value) {
  Json json = kSmall;
  at_pointer(json, pointer) = std::move(value);
  return json;
}

Json added(TokenId id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

std::unique_ptr<Tokenizer> load(const Json& json, const TokenizerConfig& config = {}) {
  return load_tokenizer_json(json.dump(), "t.json", config);
}

Error error_of(const std::string& text) {
  try {
    load_tokenizer_json(text, "t.json");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error for " << text.substr(0, 300);
  return Error(ErrorKind::kUsage, "");
}

void expect_error(const Json& json, ErrorKind kind, const std::string& part) {
  const Error error = error_of(json.dump());
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("t.json"));
  EXPECT_THAT(error.what(), HasSubstr(part));
}

TEST(TokenizerJson, LoadsTheSmallestModel) {
  const auto tokenizer = load(kSmall);
  EXPECT_THAT(tokenizer->encode("abcab", AddSpecial::kYes), ElementsAre(4, 2));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{4, 2}, ShowSpecial::kNo),
            "abc ab");  // without a decoder: spaces between tokens
  EXPECT_EQ(tokenizer->vocab_size(), 5u);
  EXPECT_EQ(tokenizer->id_of("ab"), 2);
  EXPECT_FALSE(tokenizer->id_of("zz"));
  EXPECT_FALSE(tokenizer->is_special(2));
  EXPECT_THAT(tokenizer->encode("axb", AddSpecial::kNo), ElementsAre(2));  // unknown characters are dropped
}

TEST(TokenizerJson, ThatEndsEarlyIsCalledSoWhereverItIsCut) {
  const std::string whole = R"({"model":{"vocab":{"a":1,"b":12,"c":-1},"merges":[]}, "version": 3})";
  for (std::size_t bytes = 0; bytes < whole.find(",\"c\""); ++bytes) {
    const Error error = error_of(whole.substr(0, bytes));
    EXPECT_EQ(error.message(), "unexpected end of the JSON") << bytes << ": " << error.what();
    EXPECT_EQ(error.offset(), bytes);
  }
  EXPECT_THAT(error_of(whole).what(), HasSubstr("wrong id"));
  EXPECT_THAT(error_of(R"({"a":1]})").what(), HasSubstr("not valid JSON"));
}

TEST(TokenizerJson, ReadsMergesAsStringsAndBeforeTheVocabulary) {
  const auto tokenizer = load_tokenizer_json(
      R"({"model":{"merges":["#version: 0.2","a b","ab c"],"vocab":{"a":0,"b":1,"ab":2,"c":3,"abc":4}}})",
      "t.json");
  EXPECT_THAT(tokenizer->encode("abcab", AddSpecial::kNo), ElementsAre(4, 2));
}

TEST(TokenizerJson, EmptyAffixesAndZeroDropoutAreNone) {
  Json json = with("/model/continuing_subword_prefix", "");
  json["model"]["end_of_word_suffix"] = "";
  json["model"]["dropout"] = 0.0;
  EXPECT_THAT(load(json)->encode("ab", AddSpecial::kNo), ElementsAre(2));
}

TEST(TokenizerJson, TextThatIsNotUtf8NamesTheByte) {
  try {
    load(kSmall)->encode("ab\xFFz", AddSpecial::kNo);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_EQ(error.offset(), 2u);
    EXPECT_EQ(error.found_text(), "byte 0xFF");
  }
}

TEST(TokenizerJson, IdsOutsideTheVocabularyAreErrors) {
  Json json = with("/model/vocab", Json{{"a", 0}, {"b", 5}});
  json["model"]["merges"] = Json::array();
  const auto tokenizer = load(json);
  EXPECT_EQ(tokenizer->vocab_size(), 6u);
  for (const TokenId id : {-1, 6, 1 << 30}) {
    EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{0, id}, ShowSpecial::kNo), Error) << id;
    StreamDecoder decoder(*tokenizer, ShowSpecial::kNo);
    EXPECT_THROW(decoder.append(id), Error);
  }
}

TEST(TokenizerJson, BrokenJsonNamesTheByte) {
  EXPECT_EQ(error_of("").kind(), ErrorKind::kInvalid);
  EXPECT_EQ(error_of("{\"model\": nul}").offset(), 13u);
  EXPECT_THAT(error_of(kSmall.dump() + "x").what(), HasSubstr("t.json at byte"));
  EXPECT_THAT(error_of("{\"a\": \"\xFF\"}").what(), HasSubstr("t.json at byte"));
  EXPECT_THAT(error_of(std::string("{\"a\": 1, \0}", 11)).what(), HasSubstr("NUL"));
  EXPECT_THAT(error_of("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}").what(),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("[1]").what(), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of(R"({"model":{"type":"BPE"},"model":{}})").what(), HasSubstr("duplicate key"));
  EXPECT_THAT(error_of("{\"x\":[" + std::string(1'200'000, '1').replace(1, 0, "") + "]}").kind(),
              ErrorKind::kInvalid);
  std::string many = "{\"x\":[1";
  for (int i = 0; i < 600'000; ++i) many += ",1";
  EXPECT_THAT(error_of(many + "]}").what(), HasSubstr("too many values"));
}

TEST(TokenizerJson, EveryPrefixOfAFileIsAnError) {
  const std::string text = with("/added_tokens", Json::array({added(5, "<s>")})).dump();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(load_tokenizer_json(text.substr(0, length), "t.json"), Error);
}

TEST(TokenizerJson, BrokenVocabulariesNameTheToken) {
  expect_error(with("/model/vocab", nullptr), ErrorKind::kInvalid, "model.vocab");
  expect_error(with("/model/vocab", Json::array()), ErrorKind::kInvalid,
               "model.vocab: field has a wrong value; expected an object of token ids, found an array;");
  expect_error(with("/model/vocab", 5), ErrorKind::kInvalid, "model.vocab");
  for (const Json& id : {Json(-1), Json(1.0), Json("1"), Json(nullptr), Json(true), Json(1ull << 40),
                         Json(1 << 24), Json::array(), Json::object()}) {
    expect_error(with("/model/vocab/a", id), ErrorKind::kInvalid, R"(model.vocab["a"])");
  }
  expect_error(with("/model/vocab/c", 0), ErrorKind::kInvalid, "two tokens have one id");
  EXPECT_THAT(error_of(R"({"model":{"vocab":{"a":0,"a":1},"merges":[]}})").what(),
              HasSubstr("token is listed twice"));
}

TEST(TokenizerJson, BrokenMergesNameTheRule) {
  expect_error(with("/model/merges", nullptr), ErrorKind::kInvalid, "model.merges");
  expect_error(with("/model/merges", Json::object()), ErrorKind::kInvalid, "model.merges");
  expect_error(with("/model/merges/1", {"a", "x"}), ErrorKind::kInvalid, "model.merges[1]");
  expect_error(with("/model/merges/1", {"a", "c"}), ErrorKind::kInvalid, "found \"ac\"");
  for (const Json& rule : {Json{"a"}, Json{"a", "b", "c"}, Json::array(), Json("a"), Json("a b c"), Json(""),
                           Json(5), Json(nullptr), Json::object(), Json{"a", 1}, Json{Json{"a"}, "b"}}) {
    expect_error(with("/model/merges/1", rule), ErrorKind::kInvalid, "model.merges[1]");
  }
}

TEST(TokenizerJson, ReadsUnigram) {
  Json model = Json::parse(
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2.25], ["b", -3e0]]})");
  const auto encode = [](const Json& json) { return load(json)->encode("abxa", AddSpecial::kNo); };
  EXPECT_THAT(encode(with("/model", model)), ElementsAre(2, 0, 1));
  model["unk_id"] = nullptr;
  EXPECT_THROW(encode(with("/model", model)), Error);
  const auto broken = [&](const std::string& pointer, Json value) {
    Json changed = model;
    at_pointer(changed, pointer) = std::move(value);
    return with("/model", changed);
  };
  for (const Json& pair : {Json(3), Json("a"), Json::array(), Json::array({"a"}), Json::array({1, "a"}),
                           Json::array({"a", "b"}), Json::array({"c", 1, 2}), Json::array({"c", nullptr}),
                           Json::array({"c", Json::array()}), Json::object(), Json(true)}) {
    expect_error(broken("/vocab/1", pair), ErrorKind::kInvalid, "model.vocab[1]");
  }
  expect_error(broken("/vocab/1", Json::array({"<unk>", 1})), ErrorKind::kInvalid, "listed twice");
  expect_error(broken("/vocab", Json::array()), ErrorKind::kInvalid, "found an empty array");
  expect_error(broken("/vocab", Json::object({{"a", 1}})), ErrorKind::kInvalid, "found an object");
  expect_error(broken("/vocab/1/0", std::string(1025, 'a')), ErrorKind::kInvalid, "model.vocab");
  expect_error(broken("/unk_id", 4), ErrorKind::kInvalid, "model.unk_id");
  expect_error(broken("/unk_id", -1), ErrorKind::kInvalid, "model.unk_id");
  expect_error(broken("/byte_fallback", 1), ErrorKind::kInvalid, "model.byte_fallback");
  expect_error(with("/model/vocab", model["vocab"]), ErrorKind::kInvalid, "model.vocab");  // for a BPE model
}

TEST(TokenizerJson, RefusesBrokenMapsOfCharacters) {
  for (const char* const map : {"", "x", "AAAA", "BAAAAA==", "!!!!"}) {
    expect_error(with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", map}}),
                 ErrorKind::kInvalid, "precompiled_charsmap");
  }
}

TEST(TokenizerJson, UnsupportedModelsSayWhich) {
  expect_error(with("/model/type", "WordLevel"), ErrorKind::kUnsupported, "WordLevel");
  expect_error(with("/model/type", "WordPiece"), ErrorKind::kUnsupported, "t.json: model");
  expect_error(with("/model/continuing_subword_prefix", "##"), ErrorKind::kUnsupported,
               "continuing_subword_prefix");
  expect_error(with("/model/end_of_word_suffix", "</w>"), ErrorKind::kUnsupported, "end_of_word_suffix");
  expect_error(with("/model/dropout", 0.1), ErrorKind::kUnsupported, "dropout");
  expect_error(with("/model/dropout", "x"), ErrorKind::kInvalid, "dropout");
  expect_error(with("/model/unk_token", "<unk>"), ErrorKind::kInvalid, "model.unk_token");
  expect_error(with("/model/fuse_unk", 1), ErrorKind::kInvalid, "model.fuse_unk");
  expect_error(with("/model", nullptr), ErrorKind::kInvalid, "model");
  expect_error(with("/model", 3), ErrorKind::kInvalid, "model");
}

TEST(TokenizerJson, UnknownComponentsNameTheField) {
  for (const std::string field : {"normalizer", "pre_tokenizer", "decoder", "post_processor"}) {
    expect_error(with("/" + field, Json{{"type", "Novel"}}), ErrorKind::kUnsupported, "t.json: " + field);
    expect_error(with("/" + field, Json::object()), ErrorKind::kInvalid, field);
    expect_error(with("/" + field, Json::array()), ErrorKind::kInvalid, field);
    expect_error(with("/" + field, "NFC"), ErrorKind::kInvalid, field);
  }
  const std::pair<std::string, std::string> lists[] = {{"normalizer", "normalizers"},
                                                       {"pre_tokenizer", "pretokenizers"},
                                                       {"decoder", "decoders"},
                                                       {"post_processor", "processors"}};
  for (const auto& [field, list] : lists) {
    expect_error(with("/" + field, Json{{"type", "Sequence"}}), ErrorKind::kInvalid, list);
    expect_error(with("/" + field, Json{{"type", "Sequence"}, {list, {nullptr, Json{{"type", "Novel"}}}}}),
                 ErrorKind::kUnsupported, list + "[1]");
  }
}

TEST(TokenizerJson, WrongSettingsOfComponentsAreErrors) {
  const auto split = [](Json pattern, Json behavior) {
    return with("/pre_tokenizer",
                Json{{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", false}});
  };
  expect_error(split("x", "Isolated"), ErrorKind::kInvalid, "pattern");
  expect_error(split(Json::object(), "Isolated"), ErrorKind::kInvalid, "String");
  expect_error(split(Json{{"String", ""}}, "Isolated"), ErrorKind::kInvalid, "String");
  expect_error(split(Json{{"Regex", "("}}, "Isolated"), ErrorKind::kInvalid, "pre_tokenizer: pattern.Regex");
  expect_error(split(Json{{"Regex", "[a&&b]"}}, "Isolated"), ErrorKind::kUnsupported,
               "pre_tokenizer: pattern.Regex");
  expect_error(split(Json{{"Regex", "a"}}, "Sideways"), ErrorKind::kInvalid, "behavior");
  const auto metaspace = [](Json replacement, Json scheme, bool add) {
    return with("/pre_tokenizer", Json{{"type", "Metaspace"},
                                       {"replacement", replacement},
                                       {"prepend_scheme", scheme},
                                       {"add_prefix_space", add}});
  };
  expect_error(metaspace("__", "always", true), ErrorKind::kInvalid, "replacement");
  expect_error(metaspace("", "always", true), ErrorKind::kInvalid, "replacement");
  expect_error(metaspace("_", "sometimes", true), ErrorKind::kInvalid, "prepend_scheme");
  expect_error(metaspace("_", "always", false), ErrorKind::kInvalid, "prepend_scheme");
  expect_error(with("/decoder", Json{{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}),
               ErrorKind::kInvalid, "start");
  expect_error(with("/normalizer", Json{{"type", "Prepend"}}), ErrorKind::kInvalid, "prepend");
  Json many = Json{{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 100; ++i) many["normalizers"].push_back(Json{{"type", "NFC"}});
  expect_error(with("/normalizer", many), ErrorKind::kInvalid, "too many components");
}

TEST(TokenizerJson, GrowthWithoutEndIsAnError) {
  Json doubling = Json{{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 60; ++i) {
    doubling["normalizers"].push_back(
        Json{{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaaaaaaaa"}});
  }
  const auto tokenizer = load(with("/normalizer", doubling));
  EXPECT_THROW(tokenizer->encode("a", AddSpecial::kNo), Error);
}

TEST(TokenizerJson, AddedTokensTakeTheIdsThatFollow) {
  const auto tokenizer =
      load(with("/added_tokens", Json::array({added(5, "<s>"), added(2, "ab"), added(6, "</s>")})));
  EXPECT_THAT(tokenizer->encode("<s>ab</s>", AddSpecial::kNo), ElementsAre(5, 2, 6));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->vocab_size(), 7u);
  EXPECT_EQ(tokenizer->id_of("</s>"), 6);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{5, 0, 6}, ShowSpecial::kNo), "a");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{5, 0, 6}, ShowSpecial::kYes), "<s> a </s>");
}

TEST(TokenizerJson, BrokenAddedTokensNameTheEntry) {
  expect_error(with("/added_tokens", 3), ErrorKind::kInvalid, "added_tokens");
  expect_error(with("/added_tokens", Json::array({3})), ErrorKind::kInvalid, "added_tokens[0]");
  expect_error(with("/added_tokens", Json::array({added(5, "<s>"), added(9, "</s>")})), ErrorKind::kInvalid,
               "added_tokens[1]");
  expect_error(with("/added_tokens", Json::array({added(3, "ab")})), ErrorKind::kInvalid, "added_tokens[0]");
  expect_error(with("/added_tokens", Json::array({added(5, "")})), ErrorKind::kInvalid, "content");
  expect_error(with("/added_tokens", Json::array({added(5, std::string(5000, 'x'))})), ErrorKind::kInvalid,
               "content");
  Json no_id = added(5, "<s>");
  no_id.erase("id");
  expect_error(with("/added_tokens", Json::array({no_id})), ErrorKind::kInvalid, "id");
  Json wrong_flag = added(5, "<s>");
  wrong_flag["lstrip"] = "no";
  expect_error(with("/added_tokens", Json::array({wrong_flag})), ErrorKind::kInvalid, "lstrip");
}

Json template_of(Json single) {
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", Json::array()},
          {"special_tokens",
           {{"x", {{"id", "x"}, {"ids", {0}}, {"tokens", {"a"}}}},
            {"far", {{"id", "far"}, {"ids", {99}}, {"tokens", {"z"}}}}}}};
}

TEST(TokenizerJson, TemplatesMustHoldOneSequenceAndKnownTokens) {
  const Json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json b = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  const auto token = [](const std::string& id) {
    return Json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}};
  };
  const auto tokenizer = load(with("/post_processor", template_of({token("x"), a, token("x"), token("x")})));
  EXPECT_THAT(tokenizer->encode("b", AddSpecial::kYes), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(tokenizer->encode("b", AddSpecial::kNo), ElementsAre(1));
  expect_error(with("/post_processor", template_of({a, a})), ErrorKind::kUnsupported, "single[1]");
  expect_error(with("/post_processor", template_of({b})), ErrorKind::kUnsupported, "single[0]");
  expect_error(with("/post_processor", template_of({token("x")})), ErrorKind::kUnsupported, "single");
  expect_error(with("/post_processor", template_of({token("y"), a})), ErrorKind::kInvalid, "y");
  expect_error(with("/post_processor", template_of({token("far"), a})), ErrorKind::kInvalid, "99");
}

TEST(TokenizerJson, LlamaClassesAddBosWhereTheFileDoesNot) {
  const Json json = with("/added_tokens", Json::array({added(5, "<s>"), added(6, "</s>")}));
  TokenizerConfig config;
  config.tokenizer_class = "LlamaTokenizer";
  config.bos = "<s>";
  config.eos = "</s>";
  EXPECT_THAT(load(json, config)->encode("a", AddSpecial::kYes), ElementsAre(5, 0));
  config.add_eos = true;
  EXPECT_THAT(load(json, config)->encode("a", AddSpecial::kYes), ElementsAre(5, 0, 6));
  config.add_bos = config.add_eos = false;
  EXPECT_THAT(load(json, config)->encode("a", AddSpecial::kYes), ElementsAre(0));
  config.add_bos = true;
  config.bos = "<nowhere>";
  EXPECT_THROW(load(json, config), Error);
  config.tokenizer_class = "Qwen2Tokenizer";
  EXPECT_THAT(load(json, config)->encode("a", AddSpecial::kYes), ElementsAre(0));
}

TEST(TokenizerJson, TruncationAndPaddingAreLeftOut) {
  Json json =
      with("/truncation",
           Json{{"direction", "Right"}, {"max_length", 1}, {"strategy", "LongestFirst"}, {"stride", 0}});
  EXPECT_THAT(load(json)->encode("abcab", AddSpecial::kNo), ElementsAre(4, 2));
}

}  // namespace
}  // namespace sluice::tokenizer
