#include <gmock/gmock.h>

#include "lab/ask/test_ask.h"

#include "base/json/json_pointer.h"

namespace sluice::lab {
namespace {

using testing::DoubleNear, testing::HasSubstr, testing::Pointwise;

void refuse(const char* name, const Json& good, const char* pointer, const Json& value, const char* place) {
  Json line = good;
  at_pointer(line, pointer) = value;
  EXPECT_THAT(refusal(name, line), HasSubstr(std::string("line 7: ") + place));
}

const Json kRank = Json::parse(R"({"f":[0.9,0.6,0.3,0.2],"k":2,"update":"odds"})");

TEST(Rank, AnswersTheVector) {
  for (const char* update : {"odds", "ratio"}) {
    Json line = kRank;
    line["update"] = update;
    const Json answer = ask("rank", line);
    EXPECT_THAT(
        answer.at("q").get<std::vector<double>>(),
        Pointwise(DoubleNear(1e-8), std::vector<double>{.844234547, .544448804, .351282648, .260034001}));
    EXPECT_NEAR(answer.at("phi").at(2).get<double>(), .428319663, 1e-8);
    EXPECT_EQ(answer.at("phi").size(), 5u);
    EXPECT_LT(answer.at("iterations"), update == std::string("odds") ? 60 : 129);
  }
}

TEST(Rank, CertainAndImpossibleOnes) {
  const Json answer = ask("rank", Json::parse(R"({"f":[1,0.7,0.3,0],"k":2,"update":"odds"})"));
  EXPECT_TRUE(answer.at("w").at(0).is_null());
  EXPECT_EQ(answer.at("w").at(3), 0);
  EXPECT_EQ(answer.at("q").at(0), 1);
  EXPECT_NEAR(answer.at("w").at(1).get<double>() * answer.at("w").at(2).get<double>(), 1, 1e-12);
}

TEST(Rank, BadValuesNameTheirPlace) {
  refuse("rank", kRank, "/f/1", -.1, "f[1]");
  refuse("rank", kRank, "/f/1", 1.5, "f[1]");
  refuse("rank", kRank, "/f/1", nullptr, "f[1]");
  refuse("rank", kRank, "/f", {.6, .9, .3, .2}, "f");
  refuse("rank", kRank, "/f", {.9, .6}, "f");
  refuse("rank", kRank, "/k", 0, "k");
  refuse("rank", kRank, "/k", 5, "k");
  refuse("rank", kRank, "/update", "fast", "update");
  EXPECT_THAT(answer_line(find_function("rank"), R"({"f":[NaN],"k":1,"update":"odds"})", 1).text,
              HasSubstr("error"));
}

const Json kProfile =
    Json::parse(R"({"windows":[[10,90,100],[64,0,64],[63,63,0]],"steps":[100,64,63],"k":2})");

TEST(RankProfile, AveragesWindowsByRank) {
  const Json answer = ask("rank_profile", kProfile);
  EXPECT_EQ(answer.at("used"), 2);
  EXPECT_THAT(answer.at("f").get<std::vector<double>>(),
              Pointwise(DoubleNear(1e-15), std::vector<double>{1, .95, .05}));
  EXPECT_EQ(ask("rank_profile", Json::parse(R"({"windows":[],"steps":[],"k":2})")),
            Json::parse(R"({"f":[],"used":0})"));
  EXPECT_EQ(ask("rank_profile", Json::parse(R"({"windows":[[1,2]],"steps":[63],"k":2})")),
            Json::parse(R"({"f":[],"used":0})"));
}

TEST(RankProfile, BadValuesNameTheirPlace) {
  refuse("rank_profile", kProfile, "/windows/1", {1, 2}, "windows[1]");
  refuse("rank_profile", kProfile, "/windows/1/2", -1, "windows[1][2]");
  refuse("rank_profile", kProfile, "/windows/0", 1, "windows[0]");
  refuse("rank_profile", kProfile, "/windows", {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}}, "windows");
  refuse("rank_profile", kProfile, "/steps", {100, 64}, "steps");
  refuse("rank_profile", kProfile, "/steps/2", -1, "steps[2]");
  refuse("rank_profile", kProfile, "/k", 0, "k");
  refuse("rank_profile", kProfile, "/k", 4, "k");
}

const Json kPlan =
    Json::parse(R"({"f":[0.95,0.8,0.5,0.3,0.2,0.15,0.07,0.03],"k":3,"n":3,"K":4,"L":6,"u":1,"v":0.1,
    "c":0.05,"sizes":{"F":2,"C":1.4,"S":1,"E":0.4},"memory":6,"grid":0.1,"pools":["F","C","S","E"]})");

TEST(Plan, AnswersTheVector) {
  const Json answer = ask("plan", kPlan);
  EXPECT_EQ(answer.at("gamma"), Json::parse(R"({"F":0.0,"C":1.0,"S":0.0,"E":0.0})"));
  EXPECT_EQ(answer.at("slots"), Json::parse(R"({"F":0,"C":4,"S":0,"E":0})"));
  EXPECT_NEAR(answer.at("cost").get<double>(), 2.062805, 1e-6);
  EXPECT_EQ(answer.at("configurations"), 286);
  EXPECT_NEAR(answer.at("costs_of").at("F").get<double>(), 3.15, 1e-9);
  EXPECT_EQ(answer.at("costs_of").size(), 4u);
  Json line = kPlan;
  line["pools"] = {"S", "F", "F"};
  EXPECT_EQ(ask("plan", line).at("costs_of").size(), 2u);
  EXPECT_EQ(ask("plan", line).at("configurations"), 11);
}

TEST(Plan, BadValuesNameTheirPlace) {
  refuse("plan", kPlan, "/grid", .3, "grid");
  refuse("plan", kPlan, "/grid", 0, "grid");
  refuse("plan", kPlan, "/grid", 1.5, "grid");
  refuse("plan", kPlan, "/grid", .0005, "grid");
  refuse("plan", kPlan, "/pools", Json::array(), "pools");
  refuse("plan", kPlan, "/pools/0", "M", "pools");
  refuse("plan", kPlan, "/pools/0", 3, "pools");
  refuse("plan", kPlan, "/sizes/E", 0, "sizes.E");
  refuse("plan", kPlan, "/sizes/C", -1, "sizes.C");
  refuse("plan", kPlan, "/memory", -1, "memory");
  refuse("plan", kPlan, "/n", 0, "n");
  refuse("plan", kPlan, "/K", 0, "K");
  refuse("plan", kPlan, "/L", 0, "L");
  refuse("plan", kPlan, "/c", -1, "c");
  refuse("plan", kPlan, "/k", 9, "k");
}

}  // namespace
}  // namespace sluice::lab
