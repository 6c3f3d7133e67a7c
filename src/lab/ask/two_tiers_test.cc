// The decisions of SMoE and DALI, asked through the lab: the specification's vectors, and bad lines. Random
// instances stand beside the objects that decide, in experts/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/json_pointer.h"
#include "lab/ask/test_ask.h"

namespace sluice::lab::two_tiers_test {
namespace {

using testing::DoubleNear, testing::HasSubstr, testing::Pointwise;

void refuse(const char* name, const Json& good, const char* pointer, const Json& value, const char* place) {
  Json line = good;
  at_pointer(line, pointer) = value;
  EXPECT_THAT(refusal(name, line), HasSubstr(std::string("line 7: ") + place));
}

std::vector<double> reals(const Json& array) { return array.get<std::vector<double>>(); }

const Json kRoute = Json::parse(R"({"scores":[[0.30,0.22,0.12,0.10,0.09,0.08,0.05,0.04]],"k":4,"alpha":0.3,
    "resident":[0,5],"mode":"default","merge":true,"renorm":"model","norm_topk":false})");

TEST(SmoeRoute, AnswersTheVectors) {
  const Json answer = ask("smoe_route", kRoute);
  EXPECT_EQ(answer.at("sets"), Json::parse("[[0,1,2,5]]"));
  EXPECT_EQ(answer.at("substitutions"), 1);
  EXPECT_EQ(answer.at("misses"), Json::parse("[1,2]"));
  Json printed = kRoute;
  printed["mode"] = "printed";
  EXPECT_EQ(ask("smoe_route", printed).at("sets"), Json::parse("[[0,1,2,3,5]]"));
  const Json batch =
      Json::parse(R"({"scores":[[0.45,0.05,0.16,0.15,0.14,0.05],[0.05,0.15,0.14,0.16,0.45,0.05]],
      "k":2,"alpha":0.3,"resident":[],"mode":"default","merge":true,"renorm":"none","norm_topk":false})");
  EXPECT_EQ(ask("smoe_route", batch).at("sets"), Json::parse("[[0,4],[3,4]]"));
  EXPECT_EQ(ask("smoe_route", batch).at("misses"), Json::parse("[0,3,4]"));
}

TEST(SmoeRoute, WeightsFollowFromTheSet) {
  // The set is 0 1 2 5 with scores .30 .22 .12 .08, the model's own has .74 in all.
  const auto weights = [](const char* renorm, bool norm_topk) {
    Json line = kRoute;
    line["renorm"] = renorm;
    line["norm_topk"] = norm_topk;
    return reals(ask("smoe_route", line).at("weights").at(0));
  };
  const std::vector<double> own = {.30, .22, .12, .08};
  std::vector<double> shares, mass;
  for (double s : own) shares.push_back(s / .72), mass.push_back(s * .74 / .72);
  EXPECT_THAT(weights("none", true), Pointwise(DoubleNear(1e-6), own));
  EXPECT_THAT(weights("model", false), Pointwise(DoubleNear(1e-6), own));
  EXPECT_THAT(weights("model", true), Pointwise(DoubleNear(1e-6), shares));
  EXPECT_THAT(weights("mass", true), Pointwise(DoubleNear(1e-6), shares));
  EXPECT_THAT(weights("mass", false), Pointwise(DoubleNear(1e-6), mass));
}

TEST(SmoeRoute, EmptyCases) {
  Json line = kRoute;
  line["scores"] = Json::array();
  line["resident"] = Json::array();
  EXPECT_EQ(ask("smoe_route", line),
            Json::parse(R"({"sets":[],"weights":[],"substitutions":0,"misses":[]})"));
  line["scores"] = Json::parse("[[],[]]");
  EXPECT_EQ(ask("smoe_route", line).at("sets"), Json::parse("[[],[]]"));
}

TEST(SmoeRoute, BadValuesNameTheirPlace) {
  refuse("smoe_route", kRoute, "/scores/0", 3, "scores[0]");
  refuse("smoe_route", kRoute, "/scores/0/2", -0.1, "scores[0][2]");
  refuse("smoe_route", kRoute, "/scores", {{.5, .5}, {1}}, "scores[1]");
  refuse("smoe_route", kRoute, "/k", 0, "k");
  refuse("smoe_route", kRoute, "/k", 9, "k");
  refuse("smoe_route", kRoute, "/alpha", -1, "alpha");
  refuse("smoe_route", kRoute, "/resident/1", 8, "resident[1]");
  refuse("smoe_route", kRoute, "/mode", "literal", "mode");
  refuse("smoe_route", kRoute, "/merge", 1, "merge");
  refuse("smoe_route", kRoute, "/renorm", "sum", "renorm");
  refuse("smoe_route", kRoute, "/norm_topk", nullptr, "norm_topk");
}

const Json kWindow = Json::parse(R"({"n":2,"iterations":[[0.4,0.3,0.2,0.05,0.05],[0.1,0.5,0.2,0.15,0.05],
    [0.05,0.15,0.3,0.4,0.1]],"resident":[0,1,2,3,4],"shield":[],"last_use":[3,9,9,9,7]})");

TEST(ScoreWindow, AnswersTheVectors) {
  const Json two = ask("score_window", kWindow);
  EXPECT_THAT(reals(two.at("avg")), Pointwise(DoubleNear(1e-6), {.075, .325, .25, .275, .075}));
  EXPECT_EQ(two.at("victim"), 0);
  Json line = kWindow;
  line["n"] = 1'000'000'000;  // as long as the run
  const Json three = ask("score_window", line);
  EXPECT_THAT(reals(three.at("avg")), Pointwise(DoubleNear(1e-6), {.183333, .316667, .233333, .2, .066667}));
  EXPECT_EQ(three.at("victim"), 4);
  line["shield"] = {0, 1, 2, 3, 4};
  EXPECT_TRUE(ask("score_window", line).at("victim").is_null());
  line["iterations"] = Json::array();
  line["shield"] = Json::array();
  EXPECT_EQ(ask("score_window", line), Json::parse(R"({"avg":[0,0,0,0,0],"victim":0})"));
}

TEST(ScoreWindow, BadValuesNameTheirPlace) {
  refuse("score_window", kWindow, "/n", 0, "n");
  refuse("score_window", kWindow, "/iterations/1", {.1, .2}, "iterations[1]");
  refuse("score_window", kWindow, "/iterations/1/4", "x", "iterations[1][4]");
  refuse("score_window", kWindow, "/resident/0", -1, "resident[0]");
  refuse("score_window", kWindow, "/shield", {5}, "shield[0]");
  refuse("score_window", kWindow, "/last_use/3", .5, "last_use[3]");
  refuse("score_window", kWindow, "/last_use", {1, 2}, "last_use");
}

TEST(Balance, AnswersTheVectors) {
  struct Row {
    const char* tokens;
    double load;
    double literal, look_ahead;
  };
  const Row rows[] = {{"[1]", 3, 3, 1},           {"[4,3,2,1]", 3, 6, 6}, {"[5,1,1,1]", 4, 4, 4},
                      {"[1,1,1,1,1,1]", 3, 6, 5}, {"[2,2,2]", 2, 4, 4},   {"[]", 3, 0, 0}};
  for (const Row& row : rows) {
    for (const char* mode : {"literal", "look_ahead"}) {
      const Json answer = ask(
          "balance", {{"B", Json::parse(row.tokens)}, {"t_cpu", 1}, {"t_load", row.load}, {"mode", mode}});
      EXPECT_EQ(answer.at("makespan"), mode == std::string("literal") ? row.literal : row.look_ahead)
          << row.tokens;
    }
  }
  EXPECT_EQ(ask("balance", Json::parse(R"({"B":[1,3,3,2],"t_cpu":1,"t_load":3,"mode":"look_ahead"})")),
            Json::parse(R"({"load":[1,2],"cpu":[0,3],"t_load":6,"t_cpu":3,"makespan":6})"));
}

TEST(Balance, BadValuesNameTheirPlace) {
  const Json good = Json::parse(R"({"B":[1,3],"t_cpu":1,"t_load":3,"mode":"look_ahead"})");
  refuse("balance", good, "/B/1", -1, "B[1]");
  refuse("balance", good, "/B/0", 1.5, "B[0]");
  refuse("balance", good, "/t_cpu", -1, "t_cpu");
  refuse("balance", good, "/t_load", "3", "t_load");
  refuse("balance", good, "/mode", "greedy", "mode");
}

TEST(PrefetchPartial, QueuesTopScoreExperts) {
  const Json line = Json::parse(R"({"scores":[[0.40,0.25,0.20,0.10,0.05],[0.05,0.10,0.50,0.20,0.15]],"k":2,
      "alpha":0.3,"resident":[3],"filter":true})");
  EXPECT_EQ(ask("prefetch_partial", line), Json::parse(R"({"top":[[0],[2,3]],"list":[2,0]})"));
  Json all = line;
  all["filter"] = false;
  EXPECT_EQ(ask("prefetch_partial", all), Json::parse(R"({"top":[[0,1],[2,3]],"list":[2,0,1]})"));
  refuse("prefetch_partial", line, "/filter", 0, "filter");
  refuse("prefetch_partial", line, "/scores/1/0", nullptr, "scores[1][0]");
  refuse("prefetch_partial", line, "/k", 6, "k");
  refuse("prefetch_partial", line, "/alpha", "x", "alpha");
  refuse("prefetch_partial", line, "/resident/0", 5, "resident[0]");
}

const Json kAssign = Json::parse(R"({"w":[5,0,1,3,2,9,1,0],"t_cpu":[16,0,4,10,7,28,4,0],
    "t_gpu":[10,0,10,1,10,10,1,0],"resident":[1,3,6],"slots":null,"mode":"greedy","beam":2})");

TEST(Assign, AnswersTheVectors) {
  EXPECT_EQ(ask("assign", kAssign),
            Json::parse(R"({"gpu":[0,5,6],"cpu":[2,3,4],"t_gpu":21,"t_cpu":21,"makespan":21})"));
  Json line = kAssign;
  line["mode"] = "optimal";
  EXPECT_EQ(ask("assign", line).at("makespan"), 21);
  const auto makespan = [](const char* mode, const Json& gpu, const Json& cpu) {
    return ask("assign", {{"w", std::vector<int>(cpu.size(), 1)},
                          {"t_cpu", cpu},
                          {"t_gpu", gpu},
                          {"resident", Json::array()},
                          {"slots", nullptr},
                          {"mode", mode},
                          {"beam", 2}})
        .at("makespan");
  };
  EXPECT_EQ(makespan("greedy", {1, 2, 3}, {1, 2, 3}), 4);
  EXPECT_EQ(makespan("beam", {1, 2, 3}, {1, 2, 3}), 4);
  EXPECT_EQ(makespan("optimal", {1, 2, 3}, {1, 2, 3}), 3);
  EXPECT_EQ(makespan("greedy", {4, 9, 4}, {5, 3, 1}), 8);
  EXPECT_EQ(makespan("ratio-prefix", {4, 9, 4}, {5, 3, 1}), 4);
  EXPECT_EQ(makespan("greedy", Json::array(), Json::array()), 0);
}

TEST(Assign, OnlyMissingExpertsNeedSlots) {
  Json line = kAssign;
  line["slots"] = 0;
  for (const char* mode : {"greedy", "beam", "ratio-prefix", "optimal"}) {
    line["mode"] = mode;
    EXPECT_EQ(ask("assign", line).at("gpu"), Json::parse("[3,6]")) << mode;
  }
}

TEST(Assign, WhatDoesNotFitIsABadLine) {
  Json line = kAssign;
  line["mode"] = "beam";
  line["beam"] = 1'000'000'000;
  EXPECT_EQ(ask("assign", line).at("makespan"), 21);  // all partial splits
  line["w"] = std::vector<int>(60, 1);
  line["t_cpu"] = line["t_gpu"] = std::vector<int>(60, 3);
  EXPECT_THAT(refusal("assign", line), HasSubstr("line 7: beam"));
}

TEST(Assign, BadValuesNameTheirPlace) {
  refuse("assign", kAssign, "/w/1", -1, "w[1]");
  refuse("assign", kAssign, "/t_cpu/0", -1, "t_cpu[0]");
  refuse("assign", kAssign, "/t_cpu", {1, 2}, "t_cpu");
  refuse("assign", kAssign, "/t_gpu", {1, 2}, "t_gpu");
  refuse("assign", kAssign, "/resident/0", 8, "resident[0]");
  refuse("assign", kAssign, "/slots", -1, "slots");
  refuse("assign", kAssign, "/slots", "all", "slots");
  refuse("assign", kAssign, "/mode", "ratio_prefix", "mode");
  refuse("assign", kAssign, "/beam", 0, "beam");
}

TEST(Residual, AnswersTheVector) {
  const Json line = Json::parse(R"({"h":[[[1,0],[0,1],[1,1]],[[2,1],[1,1],[2,3]]]})");
  EXPECT_EQ(ask("residual", line), Json::parse(R"({"res":[[1,1]]})"));
  EXPECT_EQ(ask("residual", Json::parse(R"({"h":[[],[],[]]})")), Json::parse(R"({"res":[[],[]]})"));
  EXPECT_EQ(ask("residual", Json::parse(R"({"h":[[[1]]]})")), Json::parse(R"({"res":[]})"));
  EXPECT_EQ(ask("residual", Json::parse(R"({"h":[]})")), Json::parse(R"({"res":[]})"));
  refuse("residual", line, "/h/1", {{1, 2}}, "h[1]");
  refuse("residual", line, "/h/1/2", {1}, "h[1][2]");
  refuse("residual", line, "/h/1/2/0", "x", "h[1][2][0]");
  refuse("residual", line, "/h/0", 3, "h[0]");
}

TEST(PrefetchResidual, PredictsCountsAndOrders) {
  const Json line =
      Json::parse(R"({"h":[[2,0],[1,0],[-9,-9]],"res":[0,3],"gate":[[1,0],[0,1],[1,1],[-1,-1]],"k":2,
      "resident":[],"size":3})");
  EXPECT_EQ(ask("prefetch_residual", line),
            Json::parse(R"({"predicted":[[1,2],[1,2],[1,3]],"counts":[0,3,2,1],"list":[1,2,3]})"));
  Json some = line;
  some["resident"] = {1};
  some["size"] = 1;
  EXPECT_EQ(ask("prefetch_residual", some).at("list"), Json::parse("[2]"));
  const Json none = Json::parse(R"({"h":[[],[]],"res":[],"gate":[],"k":0,"resident":[],"size":3})");
  EXPECT_EQ(ask("prefetch_residual", none), Json::parse(R"({"predicted":[[],[]],"counts":[],"list":[]})"));
  // A gate without width: all logits are equal, and the lowest ids win.
  const Json flat = Json::parse(R"({"h":[[]],"res":[],"gate":[[],[],[]],"k":1,"resident":[],"size":3})");
  EXPECT_EQ(ask("prefetch_residual", flat).at("predicted"), Json::parse("[[0]]"));
  refuse("prefetch_residual", line, "/h/1", {1, 2, 3}, "h[1]");
  refuse("prefetch_residual", line, "/h", {{1}}, "h");
  refuse("prefetch_residual", line, "/gate", {{1}, {2}}, "gate");
  refuse("prefetch_residual", line, "/res", {1}, "res");
  refuse("prefetch_residual", line, "/res/0", nullptr, "res[0]");
  refuse("prefetch_residual", line, "/gate/2", {1}, "gate[2]");
  refuse("prefetch_residual", line, "/k", 5, "k");
  refuse("prefetch_residual", line, "/resident", {4}, "resident[0]");
  refuse("prefetch_residual", line, "/size", -1, "size");
}

const Json kWorkload =
    Json::parse(R"({"N":8,"start":[0,1,2,3],"mode":"beneficial","w_size":4,"u_size":2,"steps":[
    [3,0,1,0,2,2,0,0],[2,0,0,1,3,2,0,0],[1,1,0,0,3,3,0,0],[2,0,0,0,2,2,1,1],[0,0,4,0,0,4,0,0],[0,0,4,0,0,4,0,0]]})");

TEST(WorkloadCache, AnswersTheVectors) {
  EXPECT_EQ(ask("workload_cache", kWorkload).at("sets"),
            Json::parse("[[0,1,2,3],[0,1,2,3],[0,1,2,3],[0,1,4,5],[0,1,4,5],[0,1,4,5]]"));
  Json line = kWorkload;
  line["w_size"] = 2;
  line["u_size"] = 1;
  EXPECT_EQ(ask("workload_cache", line).at("sets"),
            Json::parse("[[0,1,2,3],[0,2,3,4],[0,2,3,4],[0,2,4,5],[0,2,4,5],[0,2,4,5]]"));
  line = kWorkload;
  line["mode"] = "unconditional";
  line["steps"] = Json::parse("[[4,3,2,1,0,0,0,0],[4,3,2,1,0,0,0,0],[4,3,2,1,0,0,0,0],[4,3,2,1,0,0,0,0]]");
  EXPECT_EQ(ask("workload_cache", line).at("sets").at(3), Json::parse("[0,1,4,5]"));
  line["start"] = Json::array();
  EXPECT_EQ(ask("workload_cache", line).at("sets").at(3), Json::array());
}

TEST(WorkloadCache, EmaTakesClearGainsAfterEachStep) {
  Json line = Json::parse(R"({"N":3,"start":[0],"mode":"ema","gamma":0.5,"ratio":2,"u_size":2,
      "steps":[[2,3,0],[2,5,0],[0,0,9]]})");
  // Scores: (1, 1.5, 0), (1.5, 3.25, 0), (.75, 1.625, 4.5).
  EXPECT_EQ(ask("workload_cache", line).at("sets"), Json::parse("[[0],[1],[2]]"));
  line["ratio"] = 4;
  EXPECT_EQ(ask("workload_cache", line).at("sets"), Json::parse("[[0],[0],[2]]"));
}

TEST(WorkloadCache, BadValuesNameTheirPlace) {
  refuse("workload_cache", kWorkload, "/N", 0, "N");
  refuse("workload_cache", kWorkload, "/start/0", 8, "start[0]");
  refuse("workload_cache", kWorkload, "/mode", "window", "mode");
  refuse("workload_cache", kWorkload, "/w_size", 0, "w_size");
  refuse("workload_cache", kWorkload, "/u_size", -1, "u_size");
  refuse("workload_cache", kWorkload, "/steps/2", {1}, "steps[2]");
  refuse("workload_cache", kWorkload, "/steps/2/7", .5, "steps[2][7]");
  Json line = kWorkload;
  line.erase("w_size");
  EXPECT_THAT(refusal("workload_cache", line), HasSubstr("line 7: w_size"));
  line["mode"] = "ema";
  EXPECT_THAT(refusal("workload_cache", line), HasSubstr("line 7: gamma"));
  line["gamma"] = .5;
  EXPECT_THAT(refusal("workload_cache", line), HasSubstr("line 7: ratio"));
  line["ratio"] = .5;
  EXPECT_THAT(refusal("workload_cache", line), HasSubstr("line 7: ratio"));
  line["ratio"] = 1;
  ask("workload_cache", line);
  line["gamma"] = 1;
  EXPECT_THAT(refusal("workload_cache", line), HasSubstr("line 7: gamma"));
}

}  // namespace
}  // namespace sluice::lab::two_tiers_test
