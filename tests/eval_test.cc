// Runs `sluice eval`: interrupted and continued, compared with a reference, tasks, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "bundled_model.h"
#include "model/golden_models.h"
#include "scratch_test.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using sluice::program::Running;

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/eval/";

class EvalTest : public sluice::testing::ScratchTest {
 protected:
  // The first words of the bundled text, about this many bytes.
  std::string text(std::size_t bytes) const {
    const std::string whole = content_of(kModel + "/eval.txt");
    std::ofstream(file("text")) << whole.substr(0, whole.rfind(' ', bytes));
    return file("text");
  }
  static void expect_error(const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = run("eval " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

// The results without times and memory.
Json results(Json answer) {
  for (const char* key : {"memory", "io", "experts", "energy_model"}) {
    answer.erase(key);
    if (answer.contains("reference")) answer["reference"].erase(key);
  }
  answer.erase("budget");
  answer.erase("resumed");
  return answer;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::size_t finished(const std::string& state) {
  const std::string content = content_of(state);
  return Json::parse(content.substr(content.find('\n') + 1)).at("finished").size();
}

TEST_F(EvalTest, KilledOrInterruptedItGoesOnToTheSameNumbers) {
  const std::string score = "eval " + kModel + " -f " + text(3000) + " --ctx 48 --prefill 0";
  const std::string compare = score + " --stride 24 --reference " + kModel + " --memory " + memory(120);
  const std::string choose = "eval " + kModel + " --task boolq --prefill 0 --data " + kData + "boolq.jsonl";
  for (const std::string& command : {score, compare, choose}) {
    SCOPED_TRACE(command);
    const Json whole = run_json(command);
    const std::string state = file("state"), kept = command + " --state " + state;
    for (const bool kill : {false, true}) {
      fs::remove(state);
      {
        Running program(words_of(kept + " --quiet"));
        while (!fs::exists(state)) ::usleep(500);
        if (!kill) {
          program.interrupt();
          EXPECT_EQ(program.wait().code, 130);
        }
        // Otherwise the end of this block kills the program, if it is still running.
      }
      const std::size_t before = finished(state);
      EXPECT_GT(before, 0u);
      const Json resumed = run_json(kept);
      EXPECT_LT(before, finished(state));
      EXPECT_EQ(results(resumed), results(whole));
      EXPECT_EQ(whole["resumed"], 0);
      EXPECT_EQ(resumed["resumed"], before);
      // All work is done: nothing is computed again.
      const Json again = run_json(kept);
      EXPECT_EQ(results(again), results(whole));
      EXPECT_EQ(again["experts"]["accesses"], 0);
      EXPECT_EQ(again["resumed"], finished(state));
    }
  }
}

TEST_F(EvalTest, StatesOfOtherEvaluationsAndDamagedOnesAreRefused) {
  const std::string state = file("state"), text_file = text(1500);
  const std::string base = kModel + " -f " + text_file + " --state " + state;
  run_json("eval " + base + " --ctx 64");
  expect_error(base + " --ctx 32", 1, "expected ctx 32, found 64");
  expect_error(base + " --ctx 64 --stride 32", 1, "expected stride 32, found 64");
  expect_error(base + " --ctx 64 --prefill 3", 1, "prefill");
  expect_error(base + " --ctx 64 --math f32", 1, "math");
  expect_error(base + " --ctx 64 --reference " + kModel, 1, "reference");
  expect_error(kModel + " --task boolq --data " + kData + "boolq.jsonl --state " + state, 1,
               "another evaluation");
  std::ofstream(text_file, std::ios::app) << "!";
  expect_error(base + " --ctx 64", 1, "expected data");
  std::ofstream(state, std::ios::in | std::ios::out).seekp(200) << "#";
  expect_error(base + " --ctx 64", 1, "the state of the evaluation is damaged");
  const std::string before = content_of(state);
  expect_error(base + " --ctx 64", 1, state);
  EXPECT_EQ(content_of(state), before);
  expect_error(kModel + " -f " + text_file + " --state " + file("no/such/state"), 1, "no such directory");
  expect_error(kModel + " -f " + text_file + " --router cache-prior --state " + file("other"), 2, "--state");
  // Copies with other weights are other models, even with the same routers.
  fs::remove(state);
  run_json("eval " + base + " --ctx 64");
  ASSERT_EQ(run("quantise " + kModel + " -o " + file("rounded") + " --quiet").code, 0);
  expect_error(file("rounded") + " -f " + text_file + " --ctx 64 --state " + state, 1, "weights");
}

TEST_F(EvalTest, AReferenceIsComparedWithInsideTheBudget) {
  const std::string store = file("fable.sluice"), rounded = file("rounded");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
  ASSERT_EQ(run("quantise " + kModel + " -o " + rounded + " --slices 4/2 --quiet").code, 0);
  const std::string score = " -f " + text(4000) + " --ctx 128 --stride 64";
  const Json alone = run_json("eval " + store + score);
  const Json same = run_json("eval " + store + score + " --reference " + kModel + " --memory " + memory(96));
  EXPECT_EQ(same["perplexity"], alone["perplexity"]);
  EXPECT_EQ(same["reference"]["perplexity"], alone["perplexity"]);
  EXPECT_EQ(same["top_agreement"], 1);
  EXPECT_NEAR(same["divergence"]["max"].get<double>(), 0, 1e-12);
  const Json budget = same["budget"];
  EXPECT_EQ(budget["whole"], std::stoull(memory(96)) << 20);
  EXPECT_EQ(budget["model"].get<std::uint64_t>() + budget["reference"].get<std::uint64_t>() +
                budget["logits"].get<std::uint64_t>() + budget["results"].get<std::uint64_t>(),
            budget["whole"]);
  EXPECT_LE(same["memory"]["peak"], budget["model"]);
  EXPECT_LE(same["reference"]["memory"]["peak"], budget["reference"]);

  const Json lossy = run_json("eval " + rounded + score + " --reference " + store + " --reference-memory " +
                              memory(48) + " --memory " + memory(112));
  EXPECT_EQ(lossy["reference"]["perplexity"], alone["perplexity"]);
  EXPECT_EQ(lossy["budget"]["reference"], std::stoull(memory(48)) << 20);
  EXPECT_GT(lossy["perplexity"], alone["perplexity"]);
  EXPECT_LT(lossy["top_agreement"], 1);
  const Json kl = lossy["divergence"];
  EXPECT_GT(kl["min"], -1e-9);
  for (const auto& [less, more] : {std::pair("min", "median"),
                                   {"median", "p90"},
                                   {"p90", "p95"},
                                   {"p95", "p99"},
                                   {"p99", "p999"},
                                   {"p999", "max"},
                                   {"min", "mean"},
                                   {"mean", "max"}})
    EXPECT_LT(kl[less], kl[more]) << less << " " << more;
  const Outcome table = run("eval " + rounded + score + " --reference " + store + " --memory " + memory(112));
  EXPECT_NE(table.out.find("KL(reference || model)"), std::string::npos) << table.out << table.err;
}

TEST_F(EvalTest, ReferencesThatCannotBeComparedAreRefused) {
  const std::string score = kModel + " -f " + text(1000) + " --ctx 64 --reference ";
  const std::string golden = sluice::testing::kGoldenModels + "/";
  expect_error(score + golden + "qwen2_moe_a", 1, "another vocabulary than the model; expected 6400 tokens");
  expect_error(score + golden + "switch_transformers_a", 1, "switch_transformers");
  expect_error(score + "/no/such/model", 1, "/no/such/model");
  expect_error(score + kModel + " --memory " + memory(24), 1, "share of the memory budget is too small");
  expect_error(score + kModel + " --memory 1GiB --reference-memory 1GiB", 2, "--reference-memory");
  // Equally many tokens, but others.
  const std::string other = file("other");
  fs::copy(kModel, other);
  fs::permissions(other, fs::perms::owner_write, fs::perm_options::add);
  Json tokenizer = Json::parse(content_of(other + "/tokenizer.json"));
  Json& vocab = tokenizer["model"]["vocab"];
  const std::string the = "\u0120the", of = "\u0120of";
  const Json first = vocab.at(the), second = vocab.at(of);
  vocab[the] = second;
  vocab[of] = first;
  fs::remove(other + "/tokenizer.json");
  std::ofstream(other + "/tokenizer.json") << tokenizer;
  expect_error(score + other, 1, "of the text, found id");
}

TEST_F(EvalTest, TasksCountWhatTheyWereGiven) {
  const std::string choose = "eval " + kModel + " --task hellaswag --data " + kData + "hellaswag.jsonl.zst";
  const Json all = run_json(choose);
  EXPECT_EQ(all["items"], 12);
  EXPECT_EQ(all["choices"], 48);
  EXPECT_EQ(all["cut"], 0);
  EXPECT_EQ(all["prefill"], nullptr);
  const std::string state = " --state " + file("state");
  const Json some = run_json(choose + " --limit 5" + state);
  EXPECT_EQ(some["items"], 5);
  EXPECT_EQ(finished(file("state")), 5u);
  EXPECT_EQ(results(run_json(choose + state)), results(all));  // the first five are taken over
  EXPECT_EQ(results(run_json(choose + " --limit 5" + state)), results(some));
  EXPECT_EQ(run_json(choose + " --limit 1")["acc_stderr"], nullptr);
  const Json short_context =
      run_json("eval " + kModel + " --task boolq --ctx 96 --data " + kData + "boolq.jsonl");
  EXPECT_GT(short_context["cut"], 0);
  const Outcome table = run(choose + " --limit 3 --quiet");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("acc_norm"), std::string::npos) << table.out;
}

TEST_F(EvalTest, WhatWasLostIsOfWhatThisStartComputed) {
  const std::string store = file("slices.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --slices 4/2 --quiet").code, 0);
  const std::string choose = "eval " + store + " --precision low --task hellaswag --data " + kData +
                             "hellaswag.jsonl.zst --quiet --state " + file("state") + " --limit ";
  const auto lossy = testing::HasSubstr("\nslices ");
  const auto note = [](const std::string& text) { return testing::HasSubstr("(without the " + text); };
  EXPECT_THAT(run(choose + "2").out, testing::AllOf(lossy, testing::Not(note(""))));
  EXPECT_THAT(run(choose + "5").out, testing::AllOf(lossy, note("2 of 5 that --state had)")));
  EXPECT_THAT(run(choose + "5").out, testing::AllOf(testing::Not(lossy), testing::Not(note(""))));
}

// Routers and precisions that act only in steps: 64 tokens are a prompt by default.
TEST_F(EvalTest, WhatActsOnStepsHasSteps) {
  const std::string store = file("sliced.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --slices 4/2 --quiet").code, 0);
  const std::string score = " --ctx 96 -f " + text(900);
  const std::string exact = "eval " + kModel + score, router = exact + " --router cache-prior",
                    high = "eval " + store + score + " --precision high",
                    low = "eval " + store + score + " --precision low";
  EXPECT_EQ(run_json(exact)["prefill"], nullptr);
  EXPECT_EQ(run_json(high)["prefill"], nullptr);
  for (const std::string& command : {router, low}) {
    SCOPED_TRACE(command);
    EXPECT_EQ(run_json(command)["prefill"], 64);
    EXPECT_EQ(results(run_json(command + " --prefill 64")), results(run_json(command)));
    EXPECT_EQ(run_json(command + " --prefill 96")["experts"]["decode"]["accesses"], 0);
  }
  // A window of 96 tokens has 95 scored ones; the 31 behind the 65th are predicted by steps.
  const Json few = run_json(low);
  const auto tokens = few["tokens"].get<std::size_t>(), last = tokens % 96;
  ASSERT_GE(tokens, 96u);
  EXPECT_EQ(few["stepped"], tokens / 96 * 31 + (last > 65 ? last - 65 : 0));
  EXPECT_EQ(run_json(low + " --prefill 0")["stepped"], few["predicted"]);
  EXPECT_EQ(run_json(low + " --prefill 96")["stepped"], 0);
  EXPECT_EQ(run_json(exact)["stepped"], 0);
  const auto warned = [&](const std::string& command) {
    return run(command).err.find("smaller --prefill") != std::string::npos;
  };
  EXPECT_TRUE(warned(low));  // 31 of 95
  EXPECT_TRUE(warned(low + " --prefill 96"));
  EXPECT_FALSE(warned(low + " --prefill 96 --quiet"));
  EXPECT_FALSE(warned(low + " --prefill 16"));
  EXPECT_FALSE(warned(exact));
  EXPECT_FALSE(warned(high));
  // The loss is also reported to people.
  const auto said = [&](const std::string& command, const char* words) {
    const std::string text = std::regex_replace(run(command).out, std::regex("\\s+"), " ");
    return text.find(words) != std::string::npos;
  };
  EXPECT_TRUE(said(high, "high precision, int8 activations"));
  EXPECT_TRUE(said(low, "% MSB misses"));
  EXPECT_TRUE(said(router, "of all scores lost"));
  EXPECT_TRUE(said("eval " + store + score + " --preset slicemoe --miss-rate 4%", "(limit 4 %"));
  EXPECT_FALSE(said(exact, "precision"));
  const Json energy = run_json(low + " --prefill 16")["energy_model"];
  EXPECT_EQ(energy["decode"]["tokens"].get<std::size_t>() + energy["prefill"]["tokens"].get<std::size_t>(),
            tokens);
  EXPECT_GT(energy["decode"]["joules_per_token"]["total"], 0);
  // High: the same bits in a prompt and in steps. Low acts only in steps, and is worse than all high.
  EXPECT_EQ(run_json(high + " --prefill 1")["nll"], run_json(high)["nll"]);
  EXPECT_EQ(run_json(low + " --prefill 96")["nll"], run_json(high)["nll"]);
  EXPECT_GT(run_json(low + " --prefill 0")["nll"], run_json(high)["nll"]);
  const Json compared = run_json(low + " --reference " + kModel + " --memory " + memory(96));
  EXPECT_GT(compared["divergence"]["mean"], 0);
  // Low precision does not depend on earlier computation; the others do.
  const std::string state = " --state " + file("state");
  run_json(low + state);
  expect_error(store + score + " --precision high" + state, 1, "precision");
  expect_error(store + score + " --precision dbsc" + state, 2, "--state");
  expect_error(kModel + score + " --reference " + store, 1, "cannot be an exact reference");
}

TEST_F(EvalTest, ShortItemsOfATaskAreSaidToHaveNoSteps) {
  const std::string choose =
      "eval " + kModel + " --task hellaswag --limit 3 --data " + kData + "hellaswag.jsonl.zst";
  const Json exact = run_json(choose);
  EXPECT_EQ(exact["stepped"], 0);
  const Json none = run_json(choose + " --router cache-prior --prefill 4096"),
             all = run_json(choose + " --router cache-prior --prefill 0");
  EXPECT_EQ(none["stepped"], 0);
  EXPECT_EQ(none["experts"]["decode"]["tokens"], 0);
  EXPECT_EQ(all["stepped"], all["tokens"]);
  EXPECT_NE(run(choose + " --router cache-prior --prefill 4096").err.find("none of"), std::string::npos);
  EXPECT_EQ(run(choose + " --router cache-prior --prefill 0").err.find("--prefill"), std::string::npos);
}

TEST_F(EvalTest, TextsMayBeCompressed) {
  ASSERT_EQ(std::system(("zstd -q " + text(1500) + " -o " + file("text.zst")).c_str()), 0);
  EXPECT_EQ(results(run_json("eval " + kModel + " -f " + file("text.zst"))),
            results(run_json("eval " + kModel + " -f " + file("text"))));
}

TEST_F(EvalTest, FlagsThatDoNotGoTogetherAreWrongUsage) {
  const std::string text = " -f x", task = " --task boolq --data x";
  for (const auto& [flags, part] :
       {std::pair<std::string, std::string>{"", "-f"},
        {text + task, "--task"},
        {text + " --limit 3", "--limit"},
        {text + " --data x", "--data"},
        {task + " --stride 3", "--stride"},
        {task + " --reference x", "--reference"},
        {" --task boolq", "--data"},
        {" --task mmlu --data x", "arc-easy, arc-challenge, hellaswag, openbookqa, boolq"},
        {text + " --reference-memory 1GiB", "--reference-memory"},
        {text + " -c 100", "--ctx"}})
    expect_error(kModel + flags, 2, part);
  expect_error(kModel + " -f " + this->text(1000) + " --ctx 64 --stride 65", 2, "--stride");
  expect_error(kModel + " -f " + this->text(1000) + " --ctx 5000", 2, "--ctx");
  expect_error(kModel + task, 1, "x");
  expect_error(kModel + " --task arc-easy --data " + kData + "boolq.jsonl", 1, "boolq.jsonl, line 1");
}

}  // namespace
