#include <gmock/gmock.h>

#include "lab/ask/test_ask.h"

#include "base/json/json_pointer.h"

namespace sluice::lab::schedule_test {
namespace {

using testing::HasSubstr;

// V1 of SPEC §7.3.
const Json kLine = Json::parse(R"({"mode":"default","K":2,"L":2,"u":10,"v":2,"c":3,"p":[5,4,3,2,99],"tasks":[
  {"id":10,"expert":0,"tensor":0,"state":"M"},{"id":11,"expert":1,"tensor":0,"state":"C"},
  {"id":12,"expert":2,"tensor":0,"state":"S"},{"id":13,"expert":3,"tensor":0,"state":"E"}]})");

TEST(Schedule, AnswersTheVector) {
  EXPECT_EQ(ask("schedule", kLine), Json::parse(R"({"blocks":[[11,12,10,13]],
      "ready":{"0":18.0,"1":3.0,"2":9.0,"3":28.0},"makespan":30.0,"io":28.0,"threads":[12.0,12.0],"idle":0.0,
      "lower_bounds":{"I":28.0,"C":12.0,"P":14.0,"Z":19.0}})"));
}

TEST(Schedule, Modes) {
  const auto blocks = [](const char* mode) {
    Json line = kLine;
    line["mode"] = mode;
    return ask("schedule", line).at("blocks");
  };
  EXPECT_EQ(blocks("literal"), Json::parse("[[13,11,12,10]]"));
  EXPECT_EQ(blocks("best_of"), Json::parse("[[11,12,10,13]]"));
  EXPECT_EQ(blocks("p_sorted"), Json::parse("[[10,11,12,13]]"));
  EXPECT_EQ(blocks("fifo"), Json::parse("[[10],[11],[12],[13]]"));
}

TEST(Schedule, NoTasks) {
  Json line = kLine;
  line["tasks"] = Json::array();
  EXPECT_EQ(ask("schedule", line),
            Json::parse(R"({"blocks":[],"ready":{},"makespan":0.0,"io":0.0,"threads":[0.0,0.0],
      "idle":0.0,"lower_bounds":{"I":0.0,"C":0.0,"P":0.0,"Z":0.0}})"));
}

TEST(Schedule, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = kLine;
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("schedule", line), HasSubstr(place));
  };
  refuse("/mode", "serial", "mode");
  refuse("/K", 0, "K");
  refuse("/L", 0, "L");
  refuse("/L", 1.5, "L");
  refuse("/u", -1, "u");
  refuse("/p/2", -1, "p[2]");
  refuse("/p/0", "5", "p[0]");
  refuse("/tasks/1/state", "F", "tasks[1]: state");
  refuse("/tasks/1/state", "MM", "tasks[1]: state");
  refuse("/tasks/1/expert", 5, "tasks[1]: expert");
  refuse("/tasks/1/expert", 0, "tasks[1]");
  refuse("/tasks/2/tensor", -1, "tasks[2]: tensor");
  refuse("/tasks/2", 3, "tasks[2]");
  refuse("/K", 65536, "tasks");
  Json line = kLine;
  line["tasks"][3].erase("id");
  EXPECT_THAT(refusal("schedule", line), HasSubstr("tasks[3]: id"));
}

}  // namespace
}  // namespace sluice::lab::schedule_test
