// The parts of DALI's rows: batches and overlaps by hand, systems, and a report that has every row.
#include "reproduce/dali/dali.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "reproduce/dali/dali_replays.h"
#include "reproduce/dali/dali_results.h"
#include "reproduce/well_formed.h"

namespace sluice::reproduce {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two layers of four experts, top 1: token t chooses expert ids[t] in both.
WeightedTokens tokens_of(const std::vector<std::uint16_t>& ids) {
  WeightedTokens tokens(2, 4, 1);
  for (const std::uint16_t id : ids) {
    const experts::Choice choice{.expert = id, .weight = .5f};
    tokens.add_token(std::vector{choice, choice});
  }
  return tokens;
}

std::vector<std::uint16_t> experts_of(const lab::RoutedLayer& layer) {
  std::vector<std::uint16_t> ids;
  for (const experts::Choice& choice : layer.choices) ids.push_back(choice.expert);
  return ids;
}

TEST(BatchOf, CutsSequencesOutOfOneRow) {
  const lab::RoutedSteps steps =
      batch_of(tokens_of({0, 1, 2, 3, 0, 1}), {.sequences = 2, .prompt = 2, .output = 3});
  ASSERT_EQ(steps.steps.size(), 4u);
  EXPECT_TRUE(steps.steps[0].prompt);
  EXPECT_EQ(steps.steps[0].tokens(), 4u);
  EXPECT_THAT(experts_of(steps.steps[0].layers[1]), ElementsAre(0, 1, 3, 0));
  EXPECT_THAT(experts_of(steps.steps[1].layers[0]), ElementsAre(2, 1));
  EXPECT_THAT(experts_of(steps.steps[2].layers[0]), ElementsAre(3, 0));
  EXPECT_THAT(experts_of(steps.steps[3].layers[0]), ElementsAre(0, 1));  // the second has gone round
  EXPECT_EQ(steps.steps[3].sequences[1].context, 4u);
  EXPECT_EQ(steps.prompt_tokens, 4u);
  EXPECT_EQ(steps.decode_tokens, 6u);
  EXPECT_DOUBLE_EQ(active_experts(steps), 2);
}

TEST(WorkloadOverlap, ComparesNeighbouringSteps) {
  // Steps {0, 2}, {1, 2}, {1, 3} of two sequences.
  const lab::RoutedSteps steps =
      batch_of(tokens_of({0, 1, 1, 2, 2, 3}), {.sequences = 2, .prompt = 0, .output = 3});
  EXPECT_DOUBLE_EQ(workload_overlap(steps, 2), .5);
  EXPECT_DOUBLE_EQ(workload_overlap(steps, 2, {1}), .5);
  EXPECT_DOUBLE_EQ(workload_overlap(steps, 1), .5);  // 0, 1, 1: the lower id of equals
  EXPECT_THAT(tokens_of({0, 1, 1}).popularity()[0], ElementsAre(1, 2, 0, 0));
}

TEST(DaliMachines, AreBandsWhoseFitsAreMarked) {
  int fits = 0, all = 0;
  for (const DaliModel* model : {&dali_deepseek(), &dali_mixtral(), &dali_qwen()}) {
    std::vector<double> bits;
    for (const DaliMachine& machine : machines_of(*model)) {
      ++all;
      fits += machine.consumed.empty() ? 0 : 1;
      EXPECT_EQ(machine.label.find("fit") != std::string::npos, !machine.consumed.empty());
      bits.push_back(machine.machine.expert_bits);
      EXPECT_NEAR(static_cast<double>(machine.machine.expert_bytes),
                  model->weights * machine.machine.expert_bits / 8, 1);
    }
    EXPECT_THAT(bits, ::testing::IsSupersetOf({16.0, 4.5}));
  }
  EXPECT_EQ(all, 9);
  EXPECT_EQ(fits, 3);
  // SPEC §6: 541 us and 11.01 ms at 16 bits.
  EXPECT_NEAR(machines_of(dali_mixtral())[0].machine.costs.device.transfer, 11.01e-3, 1e-5);
  EXPECT_NEAR(machines_of(dali_qwen())[0].machine.costs.device.transfer, .295e-3, 1e-6);
}

TEST(RatioOf, IsTheGeometricMeanOverBatches) {
  DaliTable table;
  const auto add = [&](const char* system, std::uint32_t batch, double seconds) {
    DaliCell cell{"m", "x", system, batch, 2, {}};
    cell.result.decode.steps = 2;
    cell.result.decode.seconds = 2 * seconds;
    table.add(cell);
  };
  add("slow", 1, 8), add("slow", 4, 3), add("fast", 1, 2), add("fast", 4, 3);
  const DaliRatio ratio = ratio_of(table, "m", "x", "slow", "fast", 2, &DaliCell::tpot_s);
  EXPECT_DOUBLE_EQ(ratio.mean, 2);
  EXPECT_DOUBLE_EQ(ratio.least, 1);
  EXPECT_DOUBLE_EQ(ratio.most, 4);
  EXPECT_THAT(table.batches("m"), ElementsAre(1, 4));
}

DaliSettings quick(const char* trace) {
  DaliSettings settings;
  settings.trace = trace;
  settings.quick = true;
  settings.command = "sluice reproduce dali --quick";
  settings.version = "1";
  return settings;
}

void check_rows(const Report& report, bool is_trained) {
  ASSERT_EQ(report.rows.size(), dali_row_ids().size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ReportRow& row = report.rows[i];
    SCOPED_TRACE(row.id);
    EXPECT_EQ(row.id, dali_row_ids()[i]);
    EXPECT_FALSE(row.note.empty());
    EXPECT_FALSE(row.paper.empty());
    for (const char* bad : {"nan", "inf "})
      EXPECT_EQ((row.ours + row.note).find(bad), std::string::npos) << row.ours << row.note;
    const bool needs_model = row.id == "D-T2" || row.id == "D-T5" || row.id == "D-T8";
    const bool never = row.id == "D-T2b" || row.id == "D-2GPU";
    EXPECT_EQ(mode_text(row) == "N", never || (needs_model && !is_trained)) << mode_text(row);
    if (mode_text(row) == "N") {
      EXPECT_THAT(row.note, ::testing::AnyOf(HasSubstr("not measured"), HasSubstr("out of scope")));
    }
  }
}

TEST(ReproduceDali, HasEveryRowWithPictures) {
  std::vector<std::string> stages;
  DaliSettings settings = quick(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst");
  settings.on_stage = [&](std::string_view text) { stages.emplace_back(text); };
  const Report report = reproduce_dali(settings);
  check_rows(report, false);
  EXPECT_GT(stages.size(), 10u);
  EXPECT_EQ(report.pictures.size(), 3u);
  for (const ReportPicture& picture : report.pictures)
    EXPECT_EQ(sluice::testing::xml_fault(picture.svg), "") << picture.file;
  const auto row = [&](const char* id) { return *std::ranges::find(report.rows, id, &ReportRow::id); };
  EXPECT_THAT(row("D-T4").ours, HasSubstr("consumed"));
  EXPECT_THAT(row("D-F12").ours,
              ::testing::AllOf(HasSubstr("16 bit"), HasSubstr("4.5 bit"), HasSubstr("fit")));
  EXPECT_THAT(row("D-F12").note, ::testing::AllOf(HasSubstr("llama.cpp of today"), HasSubstr("right")));
  EXPECT_THAT(row("D-F7").note, HasSubstr("not determined"));
  EXPECT_EQ(mode_text(row("D-T7")), "A");
  EXPECT_THAT(row("D-T7").ours, HasSubstr("16 bit"));

  // Properties of every cell.
  std::size_t cells = 0;
  for (const char* table :
       {"sweep", "assignment", "ladder", "prefetches", "caches", "windows", "shares", "few_slots", "lengths"})
    for (const Json& cell : report.data.at(table)) {
      SCOPED_TRACE(cell.dump());
      ++cells;
      EXPECT_GT(cell.at("tpot_s").get<double>(), cell.at("moe_s").get<double>());
      const Json& ahead = cell.at("prefetch");
      EXPECT_LE(ahead.at("used").get<double>() + ahead.at("wasted").get<double>(),
                ahead.at("sent").get<double>());
      if (cell.at("system") == "d-naive" || cell.at("system") == "cpu") {
        EXPECT_EQ(cell.at("copies").at("loads"), 0);
      }
    }
  EXPECT_GT(cells, 200u);
}

TEST(DaliWork, GivesTheSameFiguresForTheSameSeed) {
  const auto trace = trace::open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst");
  const DaliTokens tokens(read_weighted_tokens(*trace));
  EXPECT_EQ(tokens.batches.tokens(), 32u);  // a third of 48 tells what is popular
  const DaliMachine machine = machines_of(dali_deepseek())[0];
  const auto run = [&](std::uint64_t seed, const char* preset) {
    DaliWork work(dali_deepseek(), tokens, {4, 4, 8}, seed);
    return DaliCell{"m", "x", preset, 4, 16, work.run(dali_system(dali_deepseek(), preset, 16), machine)};
  };
  for (const char* preset : {"dali", "d-hybrimoe", "edgemoe", "d-fiddler"}) {
    EXPECT_EQ(to_json(run(1, preset)), to_json(run(1, preset))) << preset;
    EXPECT_GT(run(1, preset).tpot_s(), 0) << preset;
  }
  EXPECT_NE(to_json(run(1, "dali")), to_json(run(2, "dali")));  // other residents and guesses
}

TEST(ReproduceDali, MeasuresPredictionsOfATrainedModel) {
  DaliTrainedSettings settings;
  settings.model = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "Once upon a time there was a fox number " + std::to_string(i) + " by the sea. ";
  settings.text = text;
  settings.others.push_back({"short", "Too short."});  // left out
  settings.options.threads = 1;
  settings.tokens = 700;
  settings.batches = {1, 8};
  settings.tops = {1, 4};
  const DaliTrained found = measure_dali(settings);
  EXPECT_EQ(found.calibrated, 700u);
  ASSERT_EQ(found.cosine_raw.size(), found.layers - 1);
  EXPECT_EQ(found.accuracies.size(), 5u * 2 * 2);
  for (std::size_t l = 0; l < found.cosine_raw.size(); ++l) {
    EXPECT_LE(found.cosine_raw[l], 1);
    EXPECT_GT(found.cosine_residual[l], found.cosine_raw[l]) << l;  // nearly the text that calibrated
  }
  for (const DaliAccuracy& one : found.accuracies) {
    EXPECT_GE(one.value, 0);
    EXPECT_LE(one.value, 1);
    EXPECT_GE(one.error, 0);
  }
  const auto accuracy = [&](const char* prefetch) { return found.find(kDaliHeldOut, prefetch, 1, 4).value; };
  // Any four of 32 are right once in eight times.
  EXPECT_NEAR(accuracy("random"), 4.0 / 32, .03);
  for (const char* prefetch : {"dali-residual", "raw", "stream", "stat"})
    EXPECT_GT(accuracy(prefetch), 2 * accuracy("random")) << prefetch;
}

TEST(ReproduceDali, RefusesWhatCannotBe) {
  EXPECT_THROW(reproduce_dali(quick(SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst")), Error);
  DaliTrainedSettings settings;
  settings.model = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
  settings.text = "Once upon a time.";
  settings.tokens = 700;
  EXPECT_THROW(measure_dali(settings), Error);
}

}  // namespace
}  // namespace sluice::reproduce
