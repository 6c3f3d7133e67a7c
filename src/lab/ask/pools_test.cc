#include <gmock/gmock.h>

#include "lab/ask/test_ask.h"

#include "base/json/json_pointer.h"

namespace sluice::lab {
namespace {

using testing::HasSubstr;

TEST(Dispatch, AnswersTheVectors) {
  Json line = Json::parse(R"({"slots":{"F":2,"C":1,"S":0,"E":2},"delta":0,"ranks":[0,1,2,3,4,5,6,7]})");
  EXPECT_EQ(ask("dispatch", line), Json::parse(R"({"targets":["F","F","C","E","E",null,null,null]})"));
  line["delta"] = 1;
  EXPECT_EQ(ask("dispatch", line), Json::parse(R"({"targets":["F","F","F","C","E","E",null,null]})"));
}

TEST(Dispatch, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = Json::parse(R"({"slots":{"F":2,"C":1,"S":0,"E":2},"delta":0,"ranks":[0,1]})");
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("dispatch", line), HasSubstr(place));
  };
  refuse("/slots/F", -1, "slots.F");
  refuse("/slots/C", nullptr, "slots.C");
  refuse("/slots", Json::array({1, 2, 3, 4}), "slots");
  refuse("/delta", -1, "delta");
  refuse("/ranks/1", -1, "ranks[1]");
  refuse("/ranks/0", 0.5, "ranks[0]");
}

const Json kLine = Json::parse(R"({"slots":{"F":1,"C":0,"S":3,"E":0},"delta":0,"demote":false,"N":6,
                                   "steps":[[1],[5],[5,1,1],[],[2]]})");

TEST(Pools, AnswersEveryStep) {
  EXPECT_EQ(ask("pools", kLine), Json::parse(R"({"steps":[{"place":{"1":"F"},"evicted":[]},
      {"place":{"5":"F"},"evicted":[1]}, {"place":{"1":"M","5":"S"},"evicted":[1]}, {"place":{},"evicted":[]},
      {"place":{"2":"S"},"evicted":[]}],
      "resident":{"2":"S","5":"S"}, "hits":{"F":1,"C":0,"S":0,"E":0,"M":4}})"));
}

TEST(Pools, DemotedVictimsAreNotListed) {
  Json line =
      Json::parse(R"({"slots":{"F":0,"C":1,"S":1,"E":1},"delta":9,"demote":true,"N":4,"steps":[[0,1,2,3]]})");
  EXPECT_EQ(ask("pools", line).at("steps"),
            Json::parse(R"([{"place":{"0":"S","1":"E","2":"M","3":"C"},"evicted":[2]}])"));
  line["demote"] = false;
  EXPECT_EQ(ask("pools", line).at("steps").at(0).at("evicted"), Json::parse("[0,1,2]"));
}

TEST(Pools, NoSlotsAndNoSteps) {
  Json line = kLine;
  line["steps"] = Json::array();
  EXPECT_EQ(ask("pools", line),
            Json::parse(R"({"steps":[],"resident":{},"hits":{"F":0,"C":0,"S":0,"E":0,"M":0}})"));
  line["steps"] = {{0}};
  line["slots"] = {{"F", 0}, {"C", 0}, {"S", 0}, {"E", 0}};
  EXPECT_EQ(ask("pools", line).at("steps"), Json::parse(R"([{"place":{"0":"M"},"evicted":[]}])"));
}

TEST(Pools, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = kLine;
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("pools", line), HasSubstr(place));
  };
  refuse("/N", 0, "N");
  refuse("/N", 5, "steps[1][0]");
  refuse("/steps/2/1", -1, "steps[2][1]");
  refuse("/steps/2", 3, "steps[2]");
  refuse("/demote", 1, "demote");
  refuse("/slots/E", 1.5, "slots.E");
}

}  // namespace
}  // namespace sluice::lab
