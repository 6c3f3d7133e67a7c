// Reports contain everything that their rows hold, and cells cannot break a table.
#include "reproduce/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "experts/layer_decider.h"
#include "lab/compare.h"
#include "reproduce/run_pictures.h"
#include "reproduce/well_formed.h"
#include "reproduce/zipmoe/makespan_ratio.h"

namespace sluice::reproduce {
namespace {

using ::testing::HasSubstr;

TEST(Report, MarkdownAndJsonHoldEveryRow) {
  Report report{.title = "T",
                .machine = "M",
                .command = "sluice reproduce x",
                .configuration = {"0123", "quick", "cpu, 2 threads", "1.0"},
                .prepare = "sluice pack",
                .played = {},
                .rows = {},
                .sections = {{"Heading", "body"}},
                .pictures = {{"a.svg", "caption", "<svg/>"}}};
  report.rows.push_back({"X-1", "a | b", "1\n2", "3", {Evidence::kReplay, Evidence::kRun}, "note", {}});
  report.rows.push_back(
      {"X-2", "q", "5", "n/a", {Evidence::kNone}, "no such machine", {"sluice other", "sluice third"}});
  const std::string text = to_markdown(report);
  std::istringstream lines(text);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| X-")) continue;
    ++rows;
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(bars, 8u) << line;
    EXPECT_THAT(line, HasSubstr(report.configuration.hash()));
  }
  EXPECT_EQ(rows, 2u);
  EXPECT_THAT(text, HasSubstr("a \\| b"));
  EXPECT_THAT(text, HasSubstr("![caption](a.svg)"));
  EXPECT_THAT(text, HasSubstr("- X-2: `sluice other`\n- X-2: `sluice third`"));
  EXPECT_THAT(text, HasSubstr("model 0123; flags quick; machine cpu, 2 threads; version 1.0"));
  const Json json = to_json(report);
  ASSERT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json.at("rows")[0].at("mode"), "S, R");
  EXPECT_EQ(json.at("rows")[1].at("mode"), "N");
  // The command of the whole report
  EXPECT_EQ(json.at("rows")[0].at("commands"), Json::array({"sluice reproduce x"}));
  EXPECT_EQ(json.at("rows")[1].at("commands").size(), 2u);
  EXPECT_EQ(json.at("rows")[1].at("configuration"), report.configuration.hash());
  EXPECT_EQ(json.at("configuration").at("hash"), report.configuration.hash());
  EXPECT_EQ(json.at("rows")[0].at("paper"), "1\n2");
  EXPECT_FALSE(json.contains("played"));
}

TEST(Report, RoutingThatWasPlayedIsNamed) {
  Report report;
  report.title = "T";
  EXPECT_THAT(to_markdown(report), ::testing::Not(HasSubstr("routing is")));
  report.played = "recorded from other.mrt";
  EXPECT_THAT(to_markdown(report), HasSubstr("The trace's routing is recorded from other.mrt, and not its"));
  EXPECT_EQ(to_json(report).at("played"), "recorded from other.mrt");
}

TEST(Report, ConfigurationsThatDifferHaveOtherHashes) {
  const ReportConfiguration one = {"m", "f", "c", "1"};
  EXPECT_EQ(one.hash().size(), 12u);
  EXPECT_EQ(one.hash(), (ReportConfiguration{"m", "f", "c", "1"}).hash());
  for (const ReportConfiguration& other :
       {ReportConfiguration{"x", "f", "c", "1"}, ReportConfiguration{"m", "x", "c", "1"},
        ReportConfiguration{"m", "f", "x", "1"}, ReportConfiguration{"m", "f", "c", "x"},
        ReportConfiguration{"mf", "", "c", "1"}})
    EXPECT_NE(one.hash(), other.hash());
}

TEST(Spread, MedianLeastMost) {
  const lab::Spread odd = lab::spread_of({3, 1, 2}), even = lab::spread_of({4, 1, 3, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(even.median, 2.5);
  EXPECT_EQ(even.low, 1);
  EXPECT_EQ(even.high, 4);
}

TEST(MakespanRatio, StaysWithinTheTheorem) {
  for (const char* scheduler : {"zip-affinity", "zip-affinity-literal"}) {
    const MakespanRatio ratio = makespan_ratio(scheduler, 500, 7);
    EXPECT_GT(ratio.instances, 450u);
    EXPECT_GE(ratio.mean, 1);
    EXPECT_GE(ratio.worst, ratio.mean);
    EXPECT_LE(ratio.worst_of_bound, 1);
    EXPECT_GT(ratio.worst_of_bound, ratio.worst / 3);
  }
  EXPECT_ANY_THROW(makespan_ratio("none such", 1, 1));
}

TEST(StateCounter, RanksByUseInEachLayer) {
  StateCounter counter(2, 3);
  const engine::SequenceSpan span{nullptr, 0, 1, engine::StepKind::kDecode};
  const engine::Step step{{}, {&span, 1}};
  experts::EventOutcome outcome;
  experts::LayerDecision decision;
  decision.outcome = &outcome;
  const auto used = [](std::uint16_t layer, std::uint16_t index, experts::Parts before) {
    return experts::Admission{{layer, index}, {}, before};
  };
  outcome.misses = {used(0, 0, {})};
  counter.on_decisions(0, decision);  // before any step, so not while decoding
  counter.on_step(step);
  outcome = {};
  outcome.hits = {used(0, 2, experts::Part::kFull)};
  outcome.misses = {used(0, 1, experts::Part::kSm)};
  counter.on_decisions(0, decision);
  outcome.misses.clear();
  counter.on_decisions(0, decision);
  outcome.hits = {used(1, 0, experts::Part::kFull)};
  counter.on_decisions(1, decision);
  const auto values = counter.by_rank();
  EXPECT_THAT(values[0], ::testing::ElementsAre(3, 0, 0));  // F: rank 0 of both layers
  EXPECT_THAT(values[2], ::testing::ElementsAre(0, 1, 0));  // S
  EXPECT_THAT(values[4], ::testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(sluice::testing::xml_fault(states_picture("x", counter)), "");
}

TEST(LayerGantt, ShowsTheLayerWithMostReads) {
  using Kind = fetch::TimelineEntry::Kind;
  fetch::Timeline timeline;
  const auto zero = std::chrono::steady_clock::time_point{};
  const auto add = [&](Kind kind, std::uint16_t layer, std::uint16_t index, int begin, int end) {
    timeline.add({kind,
                  {layer, index},
                  0,
                  0,
                  0,
                  0,
                  zero + std::chrono::milliseconds(begin),
                  zero + std::chrono::milliseconds(end)});
  };
  add(Kind::kCompute, 0, 1, 0, 5);
  add(Kind::kRead, 1, 4, 10, 20);
  add(Kind::kRead, 1, 5, 12, 22);
  add(Kind::kDecode, 1, 4, 20, 25);
  add(Kind::kCompute, 1, 4, 25, 30);
  const std::string svg = layer_gantt("t", timeline);
  EXPECT_EQ(sluice::testing::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("<title>read e4</title>"));
  EXPECT_THAT(svg, HasSubstr("read 2"));  // overlapping reads are in separate lanes
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("compute e1<")));
  EXPECT_EQ(sluice::testing::xml_fault(layer_gantt("t", fetch::Timeline())), "");
}

}  // namespace
}  // namespace sluice::reproduce
