#include "lab/ask/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <sstream>

#include "base/error.h"
#include "lab/ask/test_ask.h"

namespace sluice::lab {
namespace {

using testing::AllOf, testing::HasSubstr;

constexpr std::string_view kGood = R"({"policy":"lru","capacity":3,"requests":[1,2,3,1,4],"seed":0})";

Json evict(std::string_view policy, std::int64_t capacity, const Json& requests, std::int64_t seed = 0) {
  const Json line = {{"policy", policy}, {"capacity", capacity}, {"requests", requests}, {"seed", seed}};
  return ask("evict", line);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool run(const std::string& text, std::string& out) {
  std::istringstream in(text);
  std::ostringstream answers;
  const bool good = answer_all(find_function("evict"), in, "test", answers, [] { return false; });
  out = answers.str();
  return good;
}

TEST(Lab, FunctionsAreNamedOnceAndDescribed) {
  std::set<std::string_view> names = {"list"};
  for (const Function* function : functions()) {
    EXPECT_TRUE(names.insert(function->name).second);
    EXPECT_EQ(&find_function(function->name), function);
    EXPECT_FALSE(function->in.empty() || function->out.empty());
  }
  try {
    find_function("evictt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("evictt"), HasSubstr("list, schedule")));
  }
}

TEST(Lab, BadLinesAreAnsweredInPlaceAndTheRestGoesOn) {
  const std::string good(kGood), deep(5000, '['), binary("\x00\xff\xfe", 3);
  const std::string text = good + "\n{\n\n" + good + "\r\n[1]\n" + deep + "\n" + binary + "\n" +
                           R"({"policy":"lru","policy":"lfu"})" + "\n" + good;
  std::string out;
  EXPECT_FALSE(run(text, out));
  const std::vector<std::string> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 9u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(Json::parse(lines[i]).contains("error"), i != 0 && i != 3 && i != 8) << lines[i];
  }
  EXPECT_THAT(lines[5], HasSubstr("nested too deeply"));
  EXPECT_THAT(lines[7], HasSubstr("duplicate key"));
  EXPECT_EQ(lines[0], lines[8]);
}

// The parser counts lines from the start of its text, which is one line of the input.
TEST(Lab, ErrorsNameOneLine) {
  std::string out;
  EXPECT_FALSE(run(std::string(kGood) + "\n\n{\"policy\":}\n", out));
  const auto told = Json::parse(lines_of(out).at(2))["error"].get<std::string>();
  EXPECT_THAT(told, HasSubstr("line 3 at byte 10: not valid JSON; expected JSON, found unexpected '}'"));
  EXPECT_EQ(told.find("line 1"), std::string::npos) << told;
  EXPECT_EQ(told.find("column"), std::string::npos) << told;
}

TEST(Lab, GoodLinesAndNoLines) {
  std::string out;
  EXPECT_TRUE(run("", out));
  EXPECT_EQ(out, "");
  EXPECT_TRUE(run(std::string(kGood) + "\n", out));
  EXPECT_EQ(lines_of(out).size(), 1u);
  EXPECT_FALSE(run("\n", out));
  EXPECT_EQ(lines_of(out).size(), 1u);
}

TEST(Lab, LineBeyondTheLimitIsABadLine) {
  std::string text(JsonLimits().max_bytes + 100, ' ');
  text += "\n" + std::string(kGood) + "\n";
  std::string out;
  EXPECT_FALSE(run(text, out));
  const std::vector<std::string> lines = lines_of(out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("too large"));
  EXPECT_FALSE(Json::parse(lines[1]).contains("error"));
}

TEST(Lab, AnEmptyLineIsCalledSo) {
  for (const std::string text : {"\n", " \t \r\n"}) {
    std::string out;
    EXPECT_FALSE(run(text, out));
    EXPECT_THAT(out, HasSubstr("line 1: the line is empty"));
  }
}

TEST(Lab, StopsWhenTold) {
  std::istringstream in(std::string(kGood) + "\n" + std::string(kGood) + "\n");
  std::ostringstream out;
  int asked = 0;
  EXPECT_TRUE(answer_all(find_function("evict"), in, "test", out, [&] { return asked++ == 1; }));
  EXPECT_EQ(lines_of(out.str()).size(), 1u);
}

TEST(Lab, FailedWriteIsAnError) {
  std::istringstream in{std::string(kGood)};
  std::ostream out(nullptr);
  EXPECT_THROW(answer_all(find_function("evict"), in, "test", out, [] { return false; }), Error);
}

TEST(Evict, VectorsOfTheSpecification) {
  const Json requests = {1, 2, 3, 1, 4, 1, 2, 5, 1, 2, 3, 4, 5};
  EXPECT_EQ(evict("lru", 3, requests).at("hits"), 4);
  EXPECT_EQ(evict("fifo", 3, requests).at("hits"), 4);
  EXPECT_EQ(evict("lfu", 3, requests).at("hits"), 4);
  EXPECT_EQ(evict("belady", 3, requests).at("hits"), 6);
  EXPECT_EQ(evict("lfu", 3, requests),
            (Json{{"hits", 4}, {"misses", 9}, {"evicted", {2, 3, 4, 5, 3, 4}}, {"resident", {1, 2, 5}}}));
}

TEST(Evict, EventsAreAtomic) {
  // 1 and 2 are resident; the event's own ids are never victims, so the surplus (5, the highest missing) is
  // not cached.
  const Json answer = evict("lru", 3, {{1, 2}, {2, 3, 4, 5}});
  EXPECT_EQ(answer,
            (Json{{"hits", 1}, {"misses", 5}, {"evicted", Json::array({1})}, {"resident", {2, 3, 4}}}));
  // Ids within an event are a set, in any order.
  EXPECT_EQ(evict("lru", 3, {{2, 1, 1}, {5, 4, 3, 2, 2}}), answer);
}

TEST(Evict, BypassKeepsTheNearest) {
  // One of 1 and 2 may stay, and 2 comes sooner each time. 1 and 3 are never cached, so they are never
  // evicted.
  EXPECT_EQ(evict("belady_bypass", 1, Json::parse("[[1,2],2,3,1,2]")),
            (Json{{"hits", 2}, {"misses", 4}, {"evicted", Json::array()}, {"resident", {2}}}));
  // No id comes again after the last event: lower ids leave first, the event's own included.
  EXPECT_EQ(evict("belady_bypass", 2, Json::parse("[[1,2],[1,2,3]]")),
            (Json{{"hits", 2}, {"misses", 3}, {"evicted", Json::array({1})}, {"resident", {2, 3}}}));
}

TEST(Evict, EmptyCases) {
  const Json nothing = {{"hits", 0}, {"misses", 0}, {"evicted", Json::array()}, {"resident", Json::array()}};
  for (const char* policy : {"fifo", "lru", "lfu", "marking", "belady", "belady_bypass"}) {
    EXPECT_EQ(evict(policy, 3, Json::array()), nothing);
    EXPECT_EQ(evict(policy, 0, Json::array({Json::array(), Json::array()})), nothing);
    EXPECT_EQ(evict(policy, 0, {1, 1}).at("misses"), 2);
    EXPECT_EQ(evict(policy, std::numeric_limits<std::int64_t>::max(), {1, 1}).at("hits"), 1);
  }
}

TEST(Evict, IdsOfAnySize) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(evict("lru", 2, {huge, 0, huge}).at("resident"), (Json{0, huge}));
}

TEST(Evict, SeedDecidesMarkingOnly) {
  const Json requests = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  std::set<std::string> marking;
  for (std::int64_t seed = -3; seed < 20; ++seed) {
    marking.insert(evict("marking", 4, requests, seed).dump());
    EXPECT_EQ(evict("marking", 4, requests, seed), evict("marking", 4, requests, seed));
    EXPECT_EQ(evict("lru", 4, requests, seed), evict("lru", 4, requests, 0));
  }
  EXPECT_GT(marking.size(), 1u);
}

TEST(Evict, BadValuesNameTheirPlace) {
  EXPECT_THAT(refusal("evict", Json::parse(R"({"policy":"none","capacity":1,"requests":[],"seed":0})")),
              HasSubstr("policy"));
  EXPECT_THAT(refusal("evict", Json::parse(R"({"policy":"lru","capacity":-1,"requests":[],"seed":0})")),
              HasSubstr("capacity"));
  EXPECT_THAT(refusal("evict", Json::parse(R"({"policy":"lru","capacity":1,"requests":[1,-2],"seed":0})")),
              HasSubstr("requests[1]"));
  EXPECT_THAT(refusal("evict", Json::parse(R"({"policy":"lru","capacity":1,"requests":[[1,2.0]],"seed":0})")),
              HasSubstr("requests[0][1]"));
  EXPECT_THAT(
      refusal("evict",
              Json::parse(R"({"policy":"lru","capacity":1,"requests":[18446744073709551615],"seed":0})")),
      HasSubstr("requests[0]"));
  EXPECT_THAT(refusal("evict", Json::parse(R"({"policy":"lru","capacity":1,"requests":[[[1]]],"seed":0})")),
              HasSubstr("requests[0][0]"));
}

}  // namespace
}  // namespace sluice::lab
