// Rules for the lines of every lab function, whatever it answers: one good line each, and every damage to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lab/ask/test_ask.h"

namespace sluice::lab {
namespace {

using testing::AllOf, testing::HasSubstr;

struct Example {
  std::string_view name, line;
};
constexpr Example kExamples[] = {
    {"schedule",
     R"({"mode":"default","K":2,"L":2,"u":10,"v":2,"c":3,"p":[5,4],"tasks":[)"
     R"({"id":7,"expert":0,"tensor":0,"state":"M"},{"id":8,"expert":1,"tensor":0,"state":"C"}]})"},
    {"rank", R"({"f":[1,0.9,0.6,0.3,0.2],"k":3,"update":"odds"})"},
    {"rank_profile", R"({"windows":[[10,90,100],[64,0,64],[63,63,0]],"steps":[100,64,63],"k":2})"},
    {"plan", R"({"f":[0.9,0.6,0.3,0.2],"k":2,"n":3,"K":4,"L":6,"u":1,"v":0.1,"c":0.05,)"
             R"("sizes":{"F":2,"C":1.4,"S":1,"E":0.4},"memory":3,"grid":0.5,"pools":["F","C","S","E"]})"},
    {"dispatch", R"({"slots":{"F":2,"C":1,"S":0,"E":2},"delta":1,"ranks":[0,1,7]})"},
    {"pools",
     R"({"slots":{"F":1,"C":1,"S":2,"E":1},"delta":1,"demote":true,"N":6,"steps":[[1],[5],[5,1,2,3],[]]})"},
    {"evict", R"({"policy":"lru","capacity":3,"requests":[1,2,3,1,4],"seed":0})"},
    {"smoe_route",
     R"({"scores":[[0.45,0.05,0.16,0.15,0.14,0.05],[0.05,0.15,0.14,0.16,0.45,0.05]],"k":1,)"
     R"("alpha":0.3,"resident":[0],"mode":"default","merge":true,"renorm":"mass","norm_topk":false})"},
    {"score_window",
     R"({"n":2,"iterations":[[0.4,0.6],[0.5,0.5]],"resident":[0,1],"shield":[0],"last_use":[3,1]})"},
    {"balance", R"({"B":[4,3,2,1],"t_cpu":1,"t_load":3,"mode":"look_ahead"})"},
    {"prefetch_partial",
     R"({"scores":[[0.5,0.3,0.2],[0.2,0.3,0.5]],"k":1,"alpha":0.3,"resident":[0],"filter":true})"},
    {"assign",
     R"({"w":[5,0,1],"t_cpu":[16,0,4],"t_gpu":[10,0,1],"resident":[0],"slots":null,"mode":"beam","beam":2})"},
    {"residual", R"({"h":[[[1,0],[0,1],[1,1]],[[2,1],[1,1],[2,3]]]})"},
    {"prefetch_residual",
     R"({"h":[[2,0],[1,0]],"res":[0,3],"gate":[[1,0],[0,1],[1,1]],"k":1,"resident":[0],"size":2})"},
    {"workload_cache",
     R"({"N":3,"start":[0],"mode":"ema","steps":[[3,0,1],[0,2,2]],"u_size":1,"w_size":2,"gamma":0.5,"ratio":1.1})"},
    {"quantise", R"({"w":[-1,-0.5,0,0.25],"high":8,"low":4,"fp16_scale":true})"},
    {"slice_cache", R"({"capacity":4,"msb_bytes":1,"lsb_bytes":1,"lsb_miss":"fetch",)"
                    R"("steps":[{"sel":[0,1],"crit":[0]},{"sel":[0,2],"crit":[]}]})"},
    {"constraint", R"({"scores":[0.4,0.3,0.2,0.1],"k":1,"sel":[0],"resident":[0],"limit":0.1,"J":0,)"
                   R"("account":{"miss":0,"req":0},"size_msb":3,"size_high":5})"},
    {"cache_prior", R"({"z":[2,1.5,1,0.8,0.2,-1],"k":1,"cached":[0],"J":1,"lambda":0.5,"delta":3})"},
    {"cumsum", R"({"z":[2,1.5,1,0.8,0.2,-1],"k":1,"cached":[0],"J":1,"p":0.99})"},
    {"warmup", R"({"capacity":3,"kappa":0.5,"rho":0.5,)"
               R"("layers":[[{"id":1,"freq":5,"crit":3}],[{"id":4,"freq":2,"crit":0}]]})"},
};

const Json kWrong[] = {nullptr,        "x",       -1,    -0.5,     1.5, 1e300, true,
                       Json::object(), {nullptr}, {"x"}, {{{-1}}}, {-1}};

TEST(EveryFunction, HasAnExample) {
  ASSERT_EQ(std::size(kExamples), functions().size());
  for (std::size_t i = 0; i < functions().size(); ++i) EXPECT_EQ(kExamples[i].name, functions()[i]->name);
}

TEST(EveryFunction, AnswersEveryListedFieldAndIgnoresFurtherOnes) {
  for (const auto& [name, line] : kExamples) {
    SCOPED_TRACE(name);
    const Function& function = find_function(name);
    const Answer answer = answer_line(function, line, 1);
    ASSERT_TRUE(answer.good) << answer.text;
    const Json json = Json::parse(answer.text);
    EXPECT_EQ(json.size(), function.out.size());
    for (const Field& field : function.out) EXPECT_TRUE(json.contains(field.name)) << field.name;
    Json more = Json::parse(line);
    more["further"] = "ignored";
    EXPECT_EQ(answer_line(function, more.dump(), 1).text, answer.text);
  }
}

TEST(EveryFunction, NamesTheMissingOrWrongField) {
  for (const auto& [name, line] : kExamples) {
    const Function& function = find_function(name);
    for (const Field& field : function.in) {
      SCOPED_TRACE(std::string(name) + ", " + std::string(field.name));
      Json bad = Json::parse(line);
      bad.erase(std::string(field.name));
      EXPECT_THAT(refusal(name, bad),
                  AllOf(HasSubstr("line 7: " + std::string(field.name)), HasSubstr("missing")));
      for (const Json& wrong : kWrong) {
        bad[std::string(field.name)] = wrong;
        if (answer_line(function, bad.dump(), 7).good) continue;  // still a valid line for this function
        EXPECT_THAT(refusal(name, bad), HasSubstr("line 7: " + std::string(field.name)));
      }
      if (field.text.find("or null") == std::string_view::npos) {
        bad[std::string(field.name)] = nullptr;
        refusal(name, bad);
      }
      bad[std::string(field.name)] = Json::object({{"x", 1}});
      refusal(name, bad);
    }
  }
}

// Any damage to a good line gives an answer or an error that is JSON, never anything else.
TEST(EveryFunction, DamagedLinesNeverCrash) {
  for (const auto& [name, good] : kExamples) {
    std::mt19937_64 random(20260101);
    for (int i = 0; i < 3000; ++i) {
      std::string line(good);
      for (std::uint64_t edits = 1 + random() % 3; edits > 0 && !line.empty(); --edits) {
        const std::size_t at = random() % line.size();
        const std::uint64_t kind = random() % 4;
        if (kind == 0) line[at] = static_cast<char>(random());
        if (kind == 1) line.erase(at, 1 + random() % 4);
        if (kind > 1 && line[at] >= '0' && line[at] <= '9') line[at] = static_cast<char>('0' + random() % 10);
      }
      const Answer answer = answer_line(find_function(name), line, 1);
      EXPECT_EQ(Json::parse(answer.text).contains("error"), !answer.good);
    }
  }
}

}  // namespace
}  // namespace sluice::lab
