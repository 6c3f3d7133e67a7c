// Traces of each kind as scripts: the same experts for the same tokens of the same sequences.
#include "trace/routing_script_reader.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/files/scratch_directory.h"
#include "trace/testing.h"
#include "trace/trace_writer.h"

namespace sluice::trace {
namespace {

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/routing/";

experts::RoutingShape shape_of(const TraceHeader& header) {
  return {header.layers, header.experts, header.top_k};
}

std::shared_ptr<const experts::RoutingScript> script_of(const std::string& path) {
  const auto trace = open_trace(path);
  return read_routing_script(*trace, shape_of(trace->header()));
}

// Every event's tokens, counted by sequence as their marks say, against the script.
void expect_plays_its_events(const std::string& path) {
  SCOPED_TRACE(path);
  const auto script = script_of(path);
  EXPECT_EQ(script->source(), path);
  const auto trace = open_trace(path);
  std::map<std::uint32_t, std::size_t> before;  // tokens of the sequence in earlier steps
  std::size_t checked = 0;
  for (const OwnedEvent& event : all_events(*trace)) {
    std::size_t token = 0;
    for (const SequenceMark& mark : event.sequences) {
      for (std::size_t i = 0; i < mark.tokens; ++i, ++token, ++checked) {
        std::vector<std::uint16_t> expected;
        for (const auto& [expert, weight] : event.choices[token]) expected.push_back(expert);
        const auto experts = script->experts(mark.sequence, before[mark.sequence] + i, event.layer);
        ASSERT_TRUE(std::ranges::equal(experts, expected)) << "step " << event.step;
      }
      if (event.layer + 1 == trace->header().layers) before[mark.sequence] += mark.tokens;
    }
  }
  EXPECT_GT(checked, 0u);
  for (const auto& [sequence, tokens] : before) EXPECT_EQ(script->tokens(sequence), tokens);
}

TEST(RoutingScriptReader, TracesWithMarkedSequencesArePlayedAsTheyAre) {
  expect_plays_its_events(kData + "dsv2lite.first48.mrt.zst");
  expect_plays_its_events(kData + "fable.v1.trace.zst");
}

TEST(RoutingScriptReader, WithoutMarksEachPromptBeginsASequence) {
  const std::string path = kData + "qwen.route.csv.zst";
  const auto script = script_of(path);
  std::vector<std::size_t> tokens;
  const auto trace = open_trace(path);
  TraceEvent event;
  while (trace->next(event)) {
    if (event.layer != 0) continue;
    if (event.phase == TracePhase::kPrefill) tokens.push_back(0);
    tokens.back() += event.tokens;
  }
  ASSERT_EQ(script->sequences(), tokens.size());
  for (std::size_t s = 0; s < tokens.size(); ++s) EXPECT_EQ(script->tokens(s), tokens[s]);
}

TEST(RoutingScriptReader, SequencesOfABatchAreTakenApartAndTheBestChoicesKept) {
  const testing::ScratchDirectory scratch;
  const std::string path = scratch.file("a.trace");
  TraceHeader header;
  header.architecture = "a";
  header.layers = 1;
  header.experts = 4;
  header.top_k = 2;
  header.identity = 1;
  header.sizes.emplace(1, 4);
  TraceWriter writer = TraceWriter::create(path, header);
  writer.begin_run(Json::object());
  const SequenceMark marks[] = {{0, 1, 5}, {1, 1, 5}};
  writer.begin_step(TracePhase::kDecode, marks, std::vector<std::int32_t>{1, 2});
  experts::Routing routing;
  routing.choices = {{.expert = 0, .weight = .25f},
                     {.expert = 3, .weight = .75f},
                     {.expert = 1, .weight = .5f},
                     {.expert = 2, .weight = .5f}};
  routing.begin = {0, 2, 4};
  writer.layer(std::vector<float>(8, 0.f), routing);
  // A step that is not whole is left out.
  writer.begin_step(TracePhase::kDecode, {marks, 1}, std::vector<std::int32_t>{1});
  writer.close();
  const auto trace = open_trace(path);
  const auto script = read_routing_script(*trace, {2, 4, 1});
  EXPECT_EQ(script->source(),
            path +
                " (1 layers of 4 experts, top 2 on 2 layers of 4 experts, top 1: layer l plays l mod 1; the "
                "best 1 of 2)");
  ASSERT_EQ(script->sequences(), 2u);
  EXPECT_EQ(script->tokens(0), 1u);
  EXPECT_EQ(script->experts(0, 0, 0)[0], 3);
  EXPECT_EQ(script->experts(0, 0, 1)[0], 3);
  EXPECT_EQ(script->experts(1, 0, 0)[0], 1);  // among equal weights the lower id
}

TEST(RoutingScriptReader, ATraceWithoutAWholeStepIsRefused) {
  const testing::ScratchDirectory scratch;
  const std::string path = scratch.file("a.trace");
  TraceHeader header;
  header.architecture = "a";
  header.layers = header.experts = header.top_k = 1;
  header.identity = 1;
  header.sizes.emplace(1, 1);
  TraceWriter::create(path, header).close();
  try {
    script_of(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_EQ(error.where(), path);
  }
}

TEST(RoutingScriptReader, AnInterruptEndsReading) {
  const auto trace = open_trace(kData + "dsv2lite.first48.mrt.zst");
  EXPECT_THROW(read_routing_script(*trace, shape_of(trace->header()), {}, [] { return true; }), Error);
}

}  // namespace
}  // namespace sluice::trace
