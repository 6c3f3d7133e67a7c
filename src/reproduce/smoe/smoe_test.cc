// The parts of SMoE's rows: ranks by hand, places, figures of replays, and a report that has every row.
#include "reproduce/smoe/smoe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "reproduce/smoe/rank_figures.h"
#include "reproduce/smoe/smoe_replays.h"
#include "reproduce/smoe/smoe_results.h"
#include "reproduce/well_formed.h"

namespace sluice::reproduce {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One layer of three experts, top 1; each sequence is a prompt of one token, then these logits.
lab::RoutedSteps steps_of(const std::vector<std::vector<std::vector<float>>>& sequences) {
  lab::RoutedSteps steps{.layers = 1, .experts = 3, .top_k = 1, .logits = true, .steps = {}};
  for (std::uint32_t s = 0; s < sequences.size(); ++s)
    for (std::uint32_t t = 0; t <= sequences[s].size(); ++t) {
      lab::RoutedStep& step = steps.steps.emplace_back();
      step.prompt = t == 0;
      step.sequences = {{.tokens = 1, .context = t, .sequence = s}};
      step.layers = {{.choices = {{.expert = 0}},
                      .begin = {0, 1},
                      .logits = t == 0 ? std::vector<float>(3) : sequences[s][t - 1]}};
    }
  return steps;
}

TEST(RankFigures, AreMeansOverNeighbouringTokensOfASequence) {
  const float third = std::log(1.f / 3), sixth = std::log(1.f / 6);
  // Scores 6/9, 2/9 and 1/9, by rank. Expert 0, then 1, then 1 is chosen; then another sequence begins.
  const lab::RoutedSteps steps =
      steps_of({{{0, third, sixth}, {third, 0, sixth}, {third, 0, sixth}}, {{0, third, sixth}}});
  const RankFigures found = rank_figures(steps);
  for (const auto& [rank, score] : {std::pair{0u, 6.0 / 9}, {1u, 2.0 / 9}, {2u, 1.0 / 9}})
    EXPECT_NEAR(found.score[rank], score, 1e-6);
  // The first pair has used the second rank again, the other one the first.
  EXPECT_THAT(found.reuse, ElementsAre(.5, .5, 0));
  const lab::RoutingFacts facts = routing_facts(steps);
  EXPECT_NEAR(facts.mass, 6.0 / 9, 1e-6);
  EXPECT_DOUBLE_EQ(facts.overlap, .5);
  EXPECT_DOUBLE_EQ(facts.f_1, (2.0 / 3 + 1) / 2);
}

TEST(SmoePlaces, AreWhatThePaperLeavesOpen) {
  std::vector<std::string> labels;
  std::vector<std::uint32_t> slots;
  for (const SmoePlace& place : smoe_places()) {
    labels.push_back(place.label);
    slots.push_back(place.slots);
  }
  EXPECT_THAT(labels, ElementsAre("smoe-s1-25", "smoe-s1-75", "smoe-s2-25, 14 slots", "smoe-s2-25, 25 slots",
                                  "smoe-s2-75, 14 slots", "smoe-s2-75, 25 slots", "smoe-s3"));
  EXPECT_THAT(slots, ElementsAre(17, 17, 14, 25, 14, 25, 20));
  EXPECT_EQ(smoe_place(kSmoeKnownPlace).setting->alpha, .25);
}

TEST(SmoeCell, CountsWhatHasArrivedBeforeItsLayer) {
  SmoeCell cell;
  cell.result.decode.counts = {.active = 20, .resident = 9, .prefetch = {.used = 5, .late = 2}};
  cell.result.decode.own = {.active = 10, .resident = 3};
  cell.result.decode_changes = {.tokens = 4, .mass_lost = .5};
  EXPECT_DOUBLE_EQ(cell.hit(), 12.0 / 20);
  EXPECT_DOUBLE_EQ(cell.own_hit(), .3);
  EXPECT_DOUBLE_EQ(cell.moved(), .125);
  EXPECT_EQ(SmoeCell().hit(), 0);
}

class SmoeReplays : public ::testing::Test {
 protected:
  SmoeCell run(const SmoeSystem& system, std::uint32_t batch = 1) {
    const SmoePlace& place = smoe_place(kSmoeKnownPlace);
    const lab::RoutedSteps steps = smoe_steps(*place.setting, SmoeRoutingKind::kFitted,
                                              {.batch = batch, .output = 8, .sequences = 3}, 1);
    return run_smoe(steps, place, system, 1);
  }
};

TEST_F(SmoeReplays, RungsDifferByWhatTheyAdd) {
  const SmoeCell base = run(smoe_ladder()[0]), cached = run(smoe_ladder()[1]), routed = run(smoe_ladder()[2]),
                 ahead = run(smoe_ladder()[3]), balanced = run(smoe_ladder()[4]);
  for (const SmoeCell* cell : {&base, &cached, &routed, &ahead, &balanced}) {
    SCOPED_TRACE(cell->system);
    EXPECT_EQ(cell->batch, 1u);
    EXPECT_EQ(cell->prompts, 3u);
    EXPECT_GT(cell->ttft_s(), cell->tpot_s());
    EXPECT_EQ(cell->result.decode.tokens, 24u);
    // A hit is an expert that is not missing.
    const NeededExperts& needed = cell->needed;
    const auto there = static_cast<double>(needed.top + needed.low - needed.top_missing - needed.low_missing);
    EXPECT_EQ(needed.top + needed.low, cell->result.decode.counts.active);
    EXPECT_NEAR(there / static_cast<double>(needed.top + needed.low), cell->hit(), .02);
  }
  // Drawn residents hold their share of whatever is chosen.
  EXPECT_NEAR(base.hit(), 20.0 / 64, .06);
  EXPECT_GT(cached.hit(), base.hit());
  EXPECT_EQ(base.moved() + cached.moved(), 0);
  EXPECT_EQ(base.hit(), base.own_hit());
  EXPECT_GT(routed.hit(), cached.hit());
  EXPECT_GT(routed.hit(), routed.own_hit());
  EXPECT_GT(routed.moved(), 0);
  EXPECT_EQ(routed.prefetch_s(), 0);
  EXPECT_GT(ahead.prefetch_s(), 0);
  EXPECT_EQ(ahead.host_s(), 0);
  EXPECT_GT(balanced.host_s(), 0);
}

// Where the host computes what is missing, only idle admission lets the device's cache follow the text.
TEST_F(SmoeReplays, IdleAdmissionLearnsWhatTheHostComputes) {
  ASSERT_EQ(smoe_idle_ladder().size() + 1, smoe_host_ladder().size());
  for (std::size_t i = 0; i < smoe_idle_ladder().size(); ++i) {
    const SmoeCell loaded = run(smoe_host_ladder()[i + 1]), idle = run(smoe_idle_ladder()[i]);
    SCOPED_TRACE(idle.system);
    EXPECT_EQ(loaded.result.decode.counts.updates, 0u);
    EXPECT_GT(idle.result.decode.counts.updates, 0u);
    if (i < 2) {
      EXPECT_GT(idle.hit(), loaded.hit());
    }
  }
}

TEST_F(SmoeReplays, TheHostComputesWhatIsMissingButInPrompts) {
  const SmoeCell cell = run(smoe_host_ladder()[1], 3);
  EXPECT_EQ(cell.batch, 3u);
  EXPECT_EQ(cell.load_s(), 0);
  EXPECT_GT(cell.host_s(), 0);
  EXPECT_GT(cell.result.prefill.counts.loads, 0u);
  EXPECT_EQ(cell.result.prefill.counts.assigned, cell.result.prefill.counts.active);
}

SmoeReproduction quick() {
  SmoeReproduction settings;
  settings.quick = true;
  settings.command = "sluice reproduce smoe --quick";
  settings.version = "1";
  return settings;
}

void check_rows(const Report& report, bool is_trained) {
  ASSERT_EQ(report.rows.size(), smoe_row_ids().size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ReportRow& row = report.rows[i];
    SCOPED_TRACE(row.id);
    EXPECT_EQ(row.id, smoe_row_ids()[i]);
    EXPECT_FALSE(row.note.empty());
    EXPECT_FALSE(row.paper.empty());
    for (const char* bad : {"nan", "inf "})
      EXPECT_EQ((row.ours + row.note).find(bad), std::string::npos) << row.ours << row.note;
    const bool needs_model = row.id == "S-F16d" || row.id == "S-T3";
    EXPECT_EQ(mode_text(row) == "N", needs_model && !is_trained) << mode_text(row);
    if (mode_text(row) == "N") {
      EXPECT_THAT(row.note, HasSubstr("not measured"));
    }
  }
  for (const ReportPicture& picture : report.pictures)
    EXPECT_EQ(sluice::testing::xml_fault(picture.svg), "") << picture.file;
}

TEST(ReproduceSmoe, HasEveryRowWithPictures) {
  std::vector<std::string> stages;
  SmoeReproduction settings = quick();
  settings.on_stage = [&](std::string_view text) { stages.emplace_back(text); };
  const Report report = reproduce_smoe(settings);
  check_rows(report, false);
  EXPECT_EQ(stages.size(), 8u);
  EXPECT_EQ(report.pictures.size(), 3u);
  const auto row = [&](const char* id) { return *std::ranges::find(report.rows, id, &ReportRow::id); };
  EXPECT_THAT(row("S-F18").note, HasSubstr("consumed"));
  EXPECT_THAT(row("S-F19").ours, HasSubstr("consumed"));
  EXPECT_THAT(row("S-F16").ours, HasSubstr("On the host"));
  EXPECT_EQ(report.data.at("places").size(), 7u * 2 * 18);
  EXPECT_EQ(report.data.at("overlap").size(), 2u * 13);
  EXPECT_THAT(row("S-F16e").ours, HasSubstr("B = 3"));
}

TEST(ReproduceSmoe, StopsWhenItIsInterrupted) {
  SmoeReproduction settings = quick();
  settings.interrupted = [] { return true; };
  EXPECT_THROW(reproduce_smoe(settings), Error);
}

TEST(SmoeTrained, MeasuresTheBundledModel) {
  const std::string model = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
  SmoeTrainedSettings settings{.model = model,
                               .text = read_text_file(model + "/eval.txt", Bytes{1} << 24),
                               .options = {},
                               .windows = 2,
                               .alphas = {.25},
                               .caches = {.25},
                               .interrupted = {}};
  settings.options.threads = 1;
  const SmoeTrained found = measure_smoe_trained(settings);
  EXPECT_EQ(found.windows, 2u);
  EXPECT_EQ(found.routing.decode_tokens, 2u * (256 - 64));
  EXPECT_EQ(found.routing.experts, 32u);
  EXPECT_NEAR(found.facts.mass,
              found.ranks.score[0] + found.ranks.score[1] + found.ranks.score[2] + found.ranks.score[3],
              1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(found.ranks.score, std::greater()));
  EXPECT_GT(found.ranks.reuse[0], found.ranks.reuse[31]);
  EXPECT_GT(found.accuracy.predicted, 100u);
  EXPECT_GT(found.accuracy.precision(), .5);  // any four of 32 would be an eighth
  EXPECT_GE(found.accuracy.active, found.accuracy.top);
  ASSERT_EQ(found.losses.size(), 1u);
  const SmoeLoss& loss = found.losses[0];
  EXPECT_GT(loss.moved, 0);
  EXPECT_LT(loss.moved, .05);
  EXPECT_LT(std::abs(loss.loss), .05);
  EXPECT_GT(loss.error, 0);
  EXPECT_GT(loss.divergence, 0);
  EXPECT_GT(loss.agreement, .9);
  EXPECT_LT(loss.agreement, 1);
  settings.text = "Once upon a time.";
  EXPECT_THROW(measure_smoe_trained(settings), Error);
}

}  // namespace
}  // namespace sluice::reproduce
