#include "engine/grammar/schema_grammar.h"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>

#include "base/error.h"
#include "engine/grammar/random_value_testing.h"
#include "engine/grammar/schema_testing.h"
#include "engine/grammar/schema_validator_testing.h"

namespace sluice::engine {
namespace {

using testing::accepts;
using testing::grammar_of;
using ::testing::HasSubstr;
using testing::Random;

std::optional<Json> parsed(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json with_node(Json schema) {
  schema["$defs"] = Json::object();
  schema["$defs"]["node"] = Json::parse(
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},)"
      R"("required":["b"],"additionalProperties":false})");
  return schema;
}

std::string changed_text(Random& random, std::string text) {
  if (text.empty()) return text;
  const std::size_t at = testing::below(random, text.size());
  static const std::string kBytes = "{}[]\":,0123456789eE.-+abtfnz\\ \n\x80\xC3";
  const char byte = kBytes[testing::below(random, kBytes.size())];
  switch (testing::below(random, 4)) {
    case 0:
      text.erase(at, 1);
      break;
    case 1:
      text.insert(at, 1, byte);
      break;
    case 2:
      text[at] = byte;
      break;
    default:
      text.resize(at);
  }
  return text;
}

TEST(SchemaGrammar, JudgesDocumentsAsAValidatorDoes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  std::size_t fitting = 0, others = 0, accepted_changes = 0, compiled = 0, refused = 0, other_order = 0;
  for (int round = 0; round < 300; ++round) {
    const Json schema = with_node(testing::random_schema(random, 3, true));
    Json own = schema;
    own.erase("$defs");
    const bool alternatives = own.dump().find("anyOf") != std::string::npos;
    std::shared_ptr<const Grammar> grammar;
    try {
      bool left_out = false;
      grammar = grammar_of(schema, false, &left_out);
      if (left_out) continue;
    } catch (const Error& error) {  // parts that refer to themselves and are merged may be refused
      if (std::string_view(error.what()).find("no value fits") == std::string_view::npos) {
        ++refused;
        continue;
      }
    }
    if (grammar != nullptr) ++compiled;
    for (int i = 0; i < 40; ++i) {
      Json value = testing::random_value(random, schema, schema, 0);
      if (i % 2 == 1) testing::change(random, value);
      std::string text;
      testing::write(random, value, text);
      const bool expected = testing::fits(schema, value, schema);
      ++(expected ? fitting : others);
      const bool accepted = grammar != nullptr && accepts(*grammar, text);
      // A value of one alternative may fit another one that writes its keys in another order.
      if (expected && !accepted && alternatives)
        ++other_order;
      else
        EXPECT_EQ(accepted, expected) << schema.dump() << "\n" << text;
      if (grammar == nullptr) continue;
      const std::string changed = changed_text(random, text);
      if (!accepts(*grammar, changed)) continue;
      ++accepted_changes;
      const std::optional<Json> read = parsed(changed);
      EXPECT_TRUE(read && testing::fits(schema, *read, schema)) << schema.dump() << "\n" << changed;
    }
    if (HasFailure()) break;
  }
  // A test in which nearly everything is refused would show little.
  EXPECT_GT(fitting, 2000u);
  EXPECT_GT(others, 2000u);
  EXPECT_GT(accepted_changes, 200u);
  EXPECT_GT(compiled, 200u);
  EXPECT_LT(refused, 10u);
  EXPECT_LT(other_order, fitting / 50);
}

Json schema(const char* text) { return Json::parse(text); }

TEST(SchemaGrammar, KeepsTheOrderOfProperties) {
  const auto grammar =
      grammar_of(schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})"));
  EXPECT_TRUE(accepts(*grammar, R"({"a":1,"b":2})"));
  EXPECT_FALSE(accepts(*grammar, R"({"b":2,"a":1})"));
  EXPECT_TRUE(accepts(*grammar, R"({"b":2,"c":null})"));
  EXPECT_FALSE(accepts(*grammar, R"({"c":null,"b":2})"));
  EXPECT_FALSE(accepts(*grammar, R"({"\u0061":"not a number"})")) << "a name that is spelled with escapes";
}

TEST(SchemaGrammar, HasFewSpaces) {
  const auto grammar = grammar_of(schema(R"({"type":"array","items":{"type":"integer"}})"));
  EXPECT_TRUE(accepts(*grammar, "[1, 2,\n\n                    3 ]"));
  EXPECT_FALSE(accepts(*grammar, "[1,  2]"));
  EXPECT_FALSE(accepts(*grammar, "[1,\n\n\n2]"));
  EXPECT_FALSE(accepts(*grammar, "[1,\n                     2]"));
  EXPECT_FALSE(accepts(*grammar, " [1]"));
  EXPECT_FALSE(accepts(*grammar, "[1] "));
}

TEST(SchemaGrammar, StringsAreOfUtf8WithoutControls) {
  const auto grammar = grammar_of(schema(R"({"type":"string"})"));
  for (const char* good :
       {"\"\"", "\"\xC3\xA9\"", "\"\xF0\x9F\x98\x80\"", R"("\ud83d\ude00")", R"("\"\\\/\n")", R"("\uD7FF")"})
    EXPECT_TRUE(accepts(*grammar, good)) << good;
  for (const char* bad : {"\"\n\"", "\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF5\x80\x80\x80\"",
                          R"("\ud83d")", R"("\ude00")", R"("\x41")", "\"a"})
    EXPECT_FALSE(accepts(*grammar, bad)) << bad;
}

TEST(SchemaGrammar, NumbersAreShort) {
  const auto grammar = grammar_of(schema(R"({"type":"number"})"));
  for (const char* good : {"0", "-0", "-1.5e+10", "1234567890123456", "1E5", "0.25"})
    EXPECT_TRUE(accepts(*grammar, good)) << good;
  for (const char* bad : {"01", ".5", "5.", "1e", "--1", "+1", "12345678901234567", "NaN"})
    EXPECT_FALSE(accepts(*grammar, bad)) << bad;
}

TEST(SchemaGrammar, BoundsOfIntegersAreExact) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    std::int64_t low = static_cast<std::int64_t>(testing::below(random, 3000)) - 1500;
    const std::int64_t high = low + static_cast<std::int64_t>(testing::below(random, 1500));
    Json bounded = Json::object({{"type", "integer"}, {"minimum", low}, {"maximum", high}});
    const auto grammar = grammar_of(bounded);
    for (std::int64_t n = -3100; n <= 3100; ++n)
      ASSERT_EQ(accepts(*grammar, std::to_string(n)), n >= low && n <= high)
          << low << ' ' << n << ' ' << high;
  }
  const auto far = grammar_of(schema(R"({"type":"integer","minimum":9223372036854775806})"));
  EXPECT_TRUE(accepts(*far, "9223372036854775807"));
  EXPECT_FALSE(accepts(*far, "9223372036854775805"));
  EXPECT_FALSE(accepts(*far, "9223372036854775808"));
}

TEST(SchemaGrammar, KnowsDatesTimesAndIds) {
  const auto date = grammar_of(schema(R"({"type":"string","format":"date"})"));
  EXPECT_TRUE(accepts(*date, R"("2026-02-28")"));
  EXPECT_FALSE(accepts(*date, R"("2026-02-30")"));
  EXPECT_FALSE(accepts(*date, R"("2026-04-31")"));
  const auto time = grammar_of(schema(R"({"type":"string","format":"date-time"})"));
  EXPECT_TRUE(accepts(*time, R"("2026-11-23T17:20:00.5+01:00")"));
  EXPECT_FALSE(accepts(*time, R"("2026-11-23 17:20:00Z")"));
  const auto id = grammar_of(schema(R"({"type":"string","format":"uuid"})"));
  EXPECT_TRUE(accepts(*id, R"("123e4567-e89b-12d3-a456-426614174000")"));
  EXPECT_FALSE(accepts(*id, R"("123e4567e89b12d3a456426614174000")"));
}

TEST(SchemaGrammar, NestsAsDeepAsItMay) {
  const auto any = grammar_of(schema(R"({"type":"object"})"));
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "{\"a\":";
    return text + "1" + std::string(depth, '}');
  };
  EXPECT_TRUE(accepts(*any, nested(60)));
  EXPECT_FALSE(accepts(*any, nested(70)));
}

struct Refused {
  const char* schema;
  const char* where;
  const char* says;
};

TEST(SchemaGrammar, RefusalsNameKeywordAndPlace) {
  const Refused cases[] = {
      {R"({"type":"object","properties":{"a":{"not":{}}}})", "schema.properties.a.not", "\"not\""},
      {R"({"if":{},"then":{}})", "schema.if", "\"if\""},
      {R"({"type":"object","patternProperties":{}})", "schema.patternProperties", "patternProperties"},
      {R"({"anyOf":[{"type":"string"},{"contains":{}}]})", "schema.anyOf[1].contains", "contains"},
      {R"({"$ref":"https://example.com/x"})", "schema.$ref", "https://example.com/x"},
      {R"({"$ref":"#/$defs/none"})", "schema.$ref", "not there"},
      {R"({"type":"strong"})", "schema.type", "strong"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "schema.pattern", "look-around"},
      {R"x({"type":"string","pattern":"(a)\\1"})x", "schema.pattern", "back reference"},
      {R"({"type":"string","pattern":"a{3"})", "schema.pattern", "count"},
      {R"x({"type":"string","pattern":"((((((a{99}){99}){99}){99}){99}){99}"})x", "schema.pattern", "group"},
      {R"({"type":"array","minItems":-1})", "schema.minItems", "-1"},
      {R"({"properties":7})", "schema.properties", "7"},
      {R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})",
       "schema.$defs.a", "circle"},
      {R"({"anyOf":[{"$ref":"#"}]})", "schema", "no value fits"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "schema", "no value fits"},
      {R"({"allOf":[{"$ref":"#"}]})", "schema", "circle"},
      {R"(false)", "schema", "no value fits"},
      {R"({"enum":[]})", "schema.enum", "empty"},
      {R"(7)", "schema", "7"},
  };
  for (const Refused& one : cases) {
    try {
      grammar_of(schema(one.schema));
      ADD_FAILURE() << one.schema << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      EXPECT_THAT(error.where(), ::testing::StartsWith(one.where)) << one.schema;
      EXPECT_THAT(error.what(), HasSubstr(one.says)) << one.schema;
    }
  }
}

TEST(SchemaGrammar, StrictRefusesWhatElseIsLeftOut) {
  const Json bounded = schema(
      R"({"type":"object","properties":{"a":{"type":"number","minimum":1},"b":{"type":"array","uniqueItems":true}}})");
  GrammarBuilder builder;
  JsonParts parts(builder);
  const SchemaValue root = testing::schema_of(bounded);
  SchemaGrammar grammar(builder, parts, root, "schema", false);
  grammar.whole();
  EXPECT_THAT(grammar.left_out(), ::testing::UnorderedElementsAre("minimum", "uniqueItems"));
  try {
    grammar_of(bounded, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "schema.properties.a.minimum");
  }
}

// No client may make the server wait.
TEST(SchemaGrammar, HostileSchemasEndSoon) {
  const auto begin = std::chrono::steady_clock::now();
  const auto tried = [](const Json& hostile) {
    try {
      const auto grammar = grammar_of(hostile);
      accepts(*grammar, "[[[[[[1]]]]]]");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(tried(schema(R"({"type":"string","minLength":3,"maxLength":1000000000})")));
  EXPECT_TRUE(tried(
      schema(R"({"type":"array","maxItems":1000000000,"items":{"type":"array","maxItems":1000000000}})")));
  Json nested = Json::object({{"type", "integer"}});
  for (int i = 0; i < 12; ++i) nested = Json::object({{"anyOf", Json::array({nested, nested})}});
  tried(nested);
  Json merged = Json::object();
  merged["allOf"] = Json::array();
  for (int i = 0; i < 20; ++i)
    merged["allOf"].push_back(schema(R"({"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]})"));
  tried(merged);
  Json large = Json::object({{"enum", Json::array()}});
  for (int i = 0; i < 100'000; ++i) large["enum"].push_back("value " + std::to_string(i * 7919));
  tried(large);
  Json wide = Json::object({{"type", "object"}, {"properties", Json::object()}});
  for (int i = 0; i < 400; ++i)
    wide["properties"]["p" + std::to_string(i)] = Json::object({{"type", "integer"}});
  EXPECT_FALSE(tried(wide)) << "400 properties that may all be left out";
  tried(schema(R"x({"type":"string","pattern":"^(a?){60}(a*)*(b|b|b)*$"})x"));
  tried(schema(R"x({"type":"string","pattern":"^(((a{1,1000}){1,1000}){1,1000}){1,1000}$"})x"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(took.count(), 8.0) << "ten schemas";
#endif
}

}  // namespace
}  // namespace sluice::engine
