// slice_cache, warmup, constraint, cache_prior, cumsum: the specification's vectors, and bad lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/json/json_pointer.h"
#include "lab/ask/test_ask.h"

namespace sluice::lab {
namespace {

using testing::HasSubstr;

// a … e are 10 … 14.
const Json kSlices = Json::parse(R"({"capacity":4,"msb_bytes":1,"lsb_bytes":1,"lsb_miss":"fetch","steps":[
    {"sel":[10,11],"crit":[10]}, {"sel":[10,12],"crit":[]}, {"sel":[12,13],"crit":[12]},
    {"sel":[14],"crit":[14]}, {"sel":[10,12],"crit":[10]}]})");

TEST(SliceCache, AnswersTheVectors) {
  EXPECT_EQ(ask("slice_cache", kSlices), Json::parse(R"({"events":[
      [[10,"M","miss"],[11,"M","miss"],[10,"L","miss"]],
      [[10,"M","hit"],[12,"M","miss"]],
      [[12,"M","hit"],[13,"M","miss"],[12,"L","stream"]],
      [[14,"M","miss"],[14,"L","stream"]],
      [[10,"M","hit"],[12,"M","hit"],[10,"L","stream"]]],
      "msb":[13,14,10,12],"lsb":[]})"));
  Json first = kSlices;
  for (std::size_t steps = 4; steps-- > 0;) {
    first["steps"].erase(first["steps"].size() - 1);
    const Json queues[] = {{{10, 11}, {10}},
                           {{11, 10, 12}, {10}},
                           {{11, 10, 12, 13}, Json::array()},
                           {{10, 12, 13, 14}, Json::array()}};
    const Json answer = ask("slice_cache", first);
    EXPECT_EQ(answer.at("msb"), queues[steps].at(0)) << steps;
    EXPECT_EQ(answer.at("lsb"), queues[steps].at(1)) << steps;
  }
  const Json two = Json::parse(R"({"capacity":2,"msb_bytes":1,"lsb_bytes":1,"lsb_miss":"fetch",
                                   "steps":[{"sel":[1,2,3],"crit":[]}]})");
  EXPECT_EQ(ask("slice_cache", two).at("events"),
            Json::parse(R"([[[1,"M","miss"],[2,"M","miss"],[3,"M","stream"]]])"));
}

TEST(SliceCache, SkipsSetsAndHugeIds) {
  const Json line = Json::parse(R"({"capacity":9,"msb_bytes":2,"lsb_bytes":1,"lsb_miss":"skip","steps":[
      {"sel":[9000000000000000000,3,3],"crit":[3,3,9000000000000000000]}, {"sel":[],"crit":[]}]})");
  EXPECT_EQ(ask("slice_cache", line), Json::parse(R"({"events":[[[9000000000000000000,"M","miss"],
      [3,"M","miss"],[9000000000000000000,"L","skip"],[3,"L","skip"]],[]],
      "msb":[9000000000000000000,3],"lsb":[]})"));
}

TEST(SliceCache, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = kSlices;
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("slice_cache", line), HasSubstr(place));
  };
  refuse("/capacity", -1, "capacity");
  refuse("/msb_bytes", 0.5, "msb_bytes");
  refuse("/lsb_bytes", "1", "lsb_bytes");
  refuse("/lsb_miss", "fetch_if_budget", "lsb_miss");
  refuse("/steps/1", 3, "steps[1]");
  refuse("/steps/1/sel", 3, "steps[1].sel");
  refuse("/steps/1/sel/0", -3, "steps[1].sel[0]");
  refuse("/steps/2/crit", nullptr, "steps[2].crit");
  refuse("/steps/2/crit/0", 11, "steps[2].crit");
}

// The queues as SPEC 4.3 writes them, for slices of one size each.
TEST(SliceCache, EqualsTheObviousImplementation) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::int64_t msb_bytes = random() % 4, lsb_bytes = random() % 4, capacity = random() % 25;
    const bool skip = seed % 5 == 0;
    std::vector<std::int64_t> msb, lsb;
    Json steps = Json::array(), events = Json::array();
    const auto in = [](const std::vector<std::int64_t>& list, std::int64_t id) {
      return std::ranges::count(list, id) != 0;
    };
    for (int s = 0; s < 25; ++s) {
      std::vector<std::int64_t> sel = {0, 1, 2, 3, 4, 5, 6}, crit;
      std::ranges::shuffle(sel, random);
      sel.resize(random() % 5);
      for (std::int64_t id : sel)
        if (random() % 2 == 0) crit.push_back(id);
      const std::vector<std::int64_t> msb_before = msb, lsb_before = lsb;
      Json event = Json::array();
      const auto used = [&] { return std::ssize(msb) * msb_bytes + std::ssize(lsb) * lsb_bytes; };
      const auto touch = [](std::vector<std::int64_t>& list, std::int64_t id) {
        std::erase(list, id);
        list.push_back(id);
      };
      for (std::int64_t id : sel) {
        const char* fate = "hit";
        if (!in(msb_before, id)) {
          std::int64_t stays = 0;
          for (std::int64_t one : msb) stays += in(sel, one) ? msb_bytes : 0;
          for (std::int64_t one : lsb) stays += in(crit, one) ? lsb_bytes : 0;
          fate = stays + msb_bytes <= capacity ? "miss" : "stream";
          while (*fate == 'm' && used() + msb_bytes > capacity) {
            auto victim = std::ranges::find_if(lsb, [&](std::int64_t one) { return !in(crit, one); });
            if (victim != lsb.end()) {
              lsb.erase(victim);
              continue;
            }
            victim = std::ranges::find_if(msb, [&](std::int64_t one) { return !in(sel, one); });
            msb.erase(victim);
          }
        }
        if (*fate != 's') touch(msb, id);
        event.push_back({id, "M", fate});
      }
      for (std::int64_t id : sel) {
        if (!in(crit, id)) continue;
        const char* fate = "hit";
        if (!in(lsb_before, id)) {
          std::int64_t stays = std::ssize(msb) * msb_bytes;
          for (std::int64_t one : lsb) stays += in(crit, one) ? lsb_bytes : 0;
          fate = in(msb, id) && stays + lsb_bytes <= capacity ? "miss" : "stream";
          if (skip) fate = "skip";
          while (*fate == 'm' && used() + lsb_bytes > capacity)
            lsb.erase(std::ranges::find_if(lsb, [&](std::int64_t one) { return !in(crit, one); }));
        }
        if (*fate != 's') touch(lsb, id);
        event.push_back({id, "L", fate});
      }
      steps.push_back({{"sel", sel}, {"crit", crit}});
      events.push_back(std::move(event));
    }
    const Json line = {{"capacity", capacity},
                       {"msb_bytes", msb_bytes},
                       {"lsb_bytes", lsb_bytes},
                       {"lsb_miss", skip ? "skip" : "fetch"},
                       {"steps", steps}};
    const Json answer = ask("slice_cache", line);
    ASSERT_EQ(answer.at("events"), events);
    ASSERT_EQ(answer.at("msb"), Json(msb));
    ASSERT_EQ(answer.at("lsb"), Json(lsb));
  }
}

const Json kPrompt = Json::parse(R"({"capacity":5,"kappa":0.5,"rho":0.5,"layers":[
    [{"id":1,"freq":5,"crit":3},{"id":2,"freq":2,"crit":0},{"id":3,"freq":1,"crit":0}],
    [{"id":4,"freq":4,"crit":1},{"id":5,"freq":3,"crit":2},{"id":6,"freq":1,"crit":0}]]})");

TEST(Warmup, AnswersTheVector) {
  EXPECT_EQ(ask("warmup", kPrompt), Json::parse(R"({
      "evictions":[[3,"L"],[2,"L"],[4,"L"],[3,"M"],[2,"M"],[6,"L"],[6,"M"]],
      "trimmed":[[5,"L"]],"msb":[5,4,1],"lsb":[1]})"));
}

TEST(Warmup, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = kPrompt;
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("warmup", line), HasSubstr(place));
  };
  refuse("/capacity", -1, "capacity");
  refuse("/kappa", -0.5, "kappa");
  refuse("/rho", nullptr, "rho");
  refuse("/layers/1", 2, "layers[1]");
  refuse("/layers/1/0", 2, "layers[1][0]");
  refuse("/layers/1/0/id", 1, "layers[1][0].id");
  refuse("/layers/1/0/freq", 0, "layers[1][0].freq");
  refuse("/layers/1/2/crit", -1, "layers[1][2].crit");
  refuse("/layers/0/2", Json::object({{"id", 9}, {"freq", 1}}), "layers[0][2].crit");
}

Json constraint(double miss, double limit, int top_j = 0) {
  return {{"scores", {.1, .3, .2, .15, .25}},
          {"k", 3},
          {"sel", {4, 1, 2}},
          {"resident", {0, 4, 3}},
          {"limit", limit},
          {"J", top_j},
          {"account", {{"miss", miss}, {"req", 20}}},
          {"size_msb", 3},
          {"size_high", 5}};
}

// 20 + 3 * 5 = 35 bytes requested; 1 and 2 are missing, 3 bytes each.
TEST(Constraint, ReplacesWhatIsNotAllowed) {
  const auto answer = [](const Json& sel, bool violation) {
    return Json({{"sel", sel}, {"violation", violation}});
  };
  EXPECT_EQ(ask("constraint", constraint(0, .2)), answer({1, 4, 2}, false));   // 6 <= 7
  EXPECT_EQ(ask("constraint", constraint(2, .2)), answer({1, 4, 3}, false));   // 8 > 7: 2 leaves; 5
  EXPECT_EQ(ask("constraint", constraint(0, 0)), answer({4, 3, 0}, false));    // both leave
  EXPECT_EQ(ask("constraint", constraint(0, 0, 1)), answer({1, 4, 3}, true));  // 1 is the best of all
  // Over, but no expert is missing
  EXPECT_EQ(ask("constraint", constraint(99, .2)), answer({4, 3, 0}, false));
  Json no_others = constraint(0, 0);
  no_others["resident"] = {4};
  EXPECT_EQ(ask("constraint", no_others), answer({1, 4, 2}, true));
  Json ties = constraint(2, .2);
  ties["scores"] = {.1, .2, .2, .15, .25};
  EXPECT_EQ(ask("constraint", ties), answer({4, 2, 3}, false));  // the lower id leaves first
}

TEST(Constraint, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = constraint(0, .1);
    at_pointer(line, pointer) = value;
    EXPECT_THAT(refusal("constraint", line), HasSubstr(place));
  };
  refuse("/scores/1", "x", "scores[1]");
  refuse("/k", 6, ": k");
  refuse("/k", 2, ": sel");
  refuse("/sel", Json::array({1, 1, 2}), ": sel");
  refuse("/sel/0", 5, "sel[0]");
  refuse("/resident/0", -1, "resident[0]");
  refuse("/limit", -0.1, "limit");
  refuse("/J", -1, ": J");
  refuse("/account/miss", -1, "account.miss");
  refuse("/account/req", nullptr, "account.req");
  refuse("/size_msb", -1, "size_msb");
  refuse("/size_high", "5", "size_high");
}

const Json kLogits = Json::parse(R"({"z":[2,1.5,1,0.8,0.2,-1],"k":3,"cached":[3,4,5],"J":0,"delta":3})");

TEST(CachePrior, AnswersTheVectors) {
  const std::pair<double, Json> vectors[] = {
      {0, {0, 1, 2}}, {.1, {0, 1, 3}}, {.2, {0, 1, 3}}, {.5, {3, 0, 4}}, {1, {3, 4, 0}}};
  for (const auto& [lambda, sel] : vectors) {
    Json line = kLogits;
    line["lambda"] = lambda;
    EXPECT_EQ(ask("cache_prior", line).at("sel"), sel) << lambda;
  }
  Json line = kLogits;
  line["lambda"] = 1;
  line["J"] = 1;
  EXPECT_EQ(ask("cache_prior", line).at("sel"), Json({0, 3, 4}));
}

TEST(Cumsum, AnswersTheVectors) {
  const std::pair<double, Json> vectors[] = {
      {.5, {0, 1, 2}}, {.9, {3, 0, 1}}, {.95, {3, 4, 0}}, {.99, {3, 4, 5}}, {1, {3, 4, 5}}};
  for (const auto& [p, sel] : vectors) {
    Json line = kLogits;
    line["p"] = p;
    EXPECT_EQ(ask("cumsum", line).at("sel"), sel) << p;
  }
  Json line = kLogits;
  line["p"] = .99;
  line["J"] = 1;
  EXPECT_EQ(ask("cumsum", line).at("sel"), Json({0, 3, 4}));
  line["J"] = 9;
  EXPECT_EQ(ask("cumsum", line).at("sel"), Json({0, 1, 2}));
}

TEST(CachePriorAndCumsum, BadValuesNameTheirPlace) {
  const auto refuse = [](const char* pointer, const Json& value, const char* place) {
    Json line = kLogits;
    line["lambda"] = .5;
    line["p"] = .5;
    at_pointer(line, pointer) = value;
    const std::string where(place);
    if (where != ": p") {
      EXPECT_THAT(refusal("cache_prior", line), HasSubstr(where));
    }
    if (where != ": lambda" && where != ": delta") {
      EXPECT_THAT(refusal("cumsum", line), HasSubstr(where));
    }
  };
  refuse("/z/2", nullptr, "z[2]");
  refuse("/z", 3, ": z");
  refuse("/k", 0, ": k");
  refuse("/k", 7, ": k");
  refuse("/cached/1", 6, "cached[1]");
  refuse("/J", 0.5, ": J");
  refuse("/lambda", 1.5, ": lambda");
  refuse("/delta", -1, ": delta");
  refuse("/p", 2, ": p");
}

TEST(NoExperts, NothingIsSelected) {
  const Json none = Json::parse(R"({"z":[],"k":2,"cached":[],"J":0,"lambda":0.5,"delta":1,"p":0.5})");
  EXPECT_EQ(ask("cache_prior", none).at("sel"), Json::array());
  EXPECT_EQ(ask("cumsum", none).at("sel"), Json::array());
  Json line = constraint(9, 0);
  line["scores"] = line["sel"] = line["resident"] = Json::array();
  EXPECT_EQ(ask("constraint", line), Json::parse(R"({"sel":[],"violation":false})"));
}

}  // namespace
}  // namespace sluice::lab
