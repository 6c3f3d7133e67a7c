// The writer against docs/trace-format.md, and against the reader.
#include "trace/trace_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/files/scratch_directory.h"
#include "trace/example_traces.h"
#include "trace/testing.h"

namespace sluice::trace {
namespace {

using sluice::testing::ScratchDirectory;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

experts::Routing routing(const std::vector<std::vector<std::pair<std::uint16_t, float>>>& tokens) {
  experts::Routing all;
  all.begin = {0};
  for (const auto& token : tokens) {
    for (const auto& [expert, weight] : token) all.choices.push_back({.expert = expert, .weight = weight});
    all.begin.push_back(static_cast<std::uint32_t>(all.choices.size()));
  }
  return all;
}

void write_small(TraceWriter& writer) {
  writer.begin_run(Json::parse(kRunJson));
  const SequenceMark prefill{0, 2, 0}, decode{0, 1, 2};
  const std::int32_t ids[] = {7, 9}, next[] = {-3};
  writer.begin_step(TracePhase::kPrefill, {&prefill, 1}, ids);
  writer.layer(std::vector<float>{1, -1, 2, 0, 3, 4},
               routing({{{0, 0.5f}, {2, 0.25f}}, {{1, 0.125f}, {2, 0.75f}}}));
  writer.layer(std::vector<float>{9, 8, 7, 6, 5, 4}, routing({{{0, 0.5f}, {1, 0.25f}}, {{2, 1.f}}}));
  writer.begin_step(TracePhase::kDecode, {&decode, 1}, next);
  for (int layer = 0; layer < 2; ++layer) writer.layer(std::vector<float>{1, 2, 3}, routing({{{1, 1.f}}}));
}

void write_small_2(TraceWriter& writer) {
  writer.begin_run(Json::parse(kRunJson));
  const SequenceMark mark{0, 1, 9};
  const std::int32_t id[] = {7};
  writer.begin_step(TracePhase::kDecode, {&mark, 1}, id);
  writer.gate_inputs(std::vector<float>{0.5f, -0.5f});
  writer.layer(std::vector<float>{1, 2, 3}, routing({{{1, 1.f}}}));
  writer.ahead("stream", std::vector<float>{4, 5, 6});
  writer.ahead("stream+layer", std::vector<float>{7, 8, 9});
  writer.gate_inputs(std::vector<float>{0.25f, -0.25f});
  writer.layer(std::vector<float>{3, 2, 1}, routing({{{2, 1.f}}}));
}

TEST(TraceWriter, WriterMakesTheBytesOfThePage) {
  const ScratchDirectory scratch;
  TraceWriter writer = TraceWriter::create(scratch.file("a.trace"), small_header());
  write_small(writer);
  writer.close();
  EXPECT_EQ(writer.steps(), 2u);
  EXPECT_EQ(content_of(scratch.file("a.trace")), small_file());
  EXPECT_THROW(TraceWriter::create(scratch.file("a.trace"), small_header()), Error);
}

TEST(TraceWriter, WriterMakesTheBytesOfVersion2WhereThereIsMoreThanRouting) {
  const ScratchDirectory scratch;
  TraceWriter writer = TraceWriter::create(scratch.file("a.trace"), small_header_2());
  write_small_2(writer);
  writer.close();
  EXPECT_EQ(content_of(scratch.file("a.trace")), small_file_2());
}

// So that a disk without room is told before the first step.
TEST(TraceWriter, TheFileHasItsHeaderWhenARunBegins) {
  const ScratchDirectory scratch;
  TraceWriter writer = TraceWriter::create(scratch.file("a.trace"), small_header());
  writer.begin_run(Json::parse(kRunJson));
  const std::string begun = content_of(scratch.file("a.trace"));
  EXPECT_GT(begun.size(), std::string(kRunJson).size());
  EXPECT_TRUE(small_file().starts_with(begun));
}

TEST(TraceWriter, ARunGivenUpLeavesWhatWasThere) {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a.trace");
  const SequenceMark mark{0, 1, 0};
  const std::int32_t id[] = {7};
  const auto one_layer = [&](TraceWriter& writer) {
    writer.begin_step(TracePhase::kPrefill, {&mark, 1}, id);
    writer.layer(std::vector<float>{1, 2, 3}, routing({{{1, 1.f}}}));
  };
  {
    TraceWriter writer = TraceWriter::create(path, small_header());
    writer.begin_run(Json::object());
    one_layer(writer);
    writer.give_up();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    TraceWriter writer = TraceWriter::create(path, small_header());
    write_small(writer);
    writer.give_up();
  }
  EXPECT_FALSE(std::filesystem::exists(path));  // whole steps, too, are only a part of the run
  {
    TraceWriter writer = TraceWriter::create(path, small_header());
    write_small(writer);
    writer.close();
  }
  const std::string whole = content_of(path);
  for (const bool whole_steps : {false, true}) {
    TraceWriter writer = TraceWriter::resume(path, small_header());
    if (whole_steps) {
      write_small(writer);
    } else {
      writer.begin_run(Json::object());
      one_layer(writer);
    }
    writer.give_up();
    EXPECT_EQ(content_of(path), whole) << whole_steps;
  }
}

TEST(TraceWriter, ACutFileIsContinuedBehindItsLastWholeStep) {
  const ScratchDirectory scratch;
  const std::string whole = small_file(), start = file_start(kSmallJson);
  const std::vector<OwnedEvent> all = all_events(*open_text(whole));
  for (std::size_t length = start.size(); length <= whole.size(); length += 5) {
    SCOPED_TRACE(length);
    const std::string path = scratch.write("cut.trace", whole.substr(0, length));
    const std::size_t kept = all_events(*open_trace(path)).size() / 2 * 2;  // events of complete steps
    TraceWriter writer = TraceWriter::resume(path, small_header());
    EXPECT_EQ(writer.steps(), kept / 2);
    write_small(writer);
    writer.close();
    const auto trace = open_trace(path);
    const std::vector<OwnedEvent> events = all_events(*trace);
    EXPECT_FALSE(trace->cut_off());
    ASSERT_EQ(events.size(), kept + 4);
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), events.begin()));
    EXPECT_EQ(events[kept].step, kept / 2);
    EXPECT_EQ(events[kept].sequences[0].sequence, kept > 0 ? 1u : 0u);  // every run numbers its own sequences
    EXPECT_EQ(events[kept].choices, all[0].choices);
  }
}

TEST(TraceWriter, AStepThatIsGivenUpLeavesNothingBehind) {
  const ScratchDirectory scratch;
  TraceHeader header = small_header();
  // Small steps are gathered until they are complete; large ones are handed over before.
  for (const std::uint32_t tokens : {1u, 20000u}) {
    SCOPED_TRACE(tokens);
    const std::string path = scratch.file(std::to_string(tokens));
    TraceWriter writer = TraceWriter::create(path, header);
    writer.abandon_step();  // there is no step to abandon
    const SequenceMark mark{0, tokens, 0};
    const auto half_a_step = [&] {
      writer.begin_step(TracePhase::kPrefill, {&mark, 1}, std::vector<std::int32_t>(tokens, 1));
      writer.layer(std::vector<float>(std::size_t{tokens} * 3, 0.5f),
                   routing(std::vector<std::vector<std::pair<std::uint16_t, float>>>(tokens, {{1, 1.f}})));
      EXPECT_TRUE(writer.in_step());
    };
    write_small(writer);
    const std::string whole = small_file();
    half_a_step();
    writer.abandon_step();
    EXPECT_FALSE(writer.in_step());
    EXPECT_EQ(writer.steps(), 2u);
    writer.begin_run(Json::parse(kRunJson));
    half_a_step();
    writer.close();
    EXPECT_EQ(content_of(path), whole + record(1, kRunJson));
  }
}

TEST(TraceWriter, AnotherModelsTraceIsNotContinued) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("a.trace", small_file());
  TraceHeader other = small_header();
  other.identity = 1;
  EXPECT_THROW(TraceWriter::resume(path, other), Error);
  other = small_header();
  other.sizes->set({0, 0}, {.full = 1}, 1);
  EXPECT_THROW(TraceWriter::resume(path, other), Error);
  EXPECT_THROW(TraceWriter::resume(scratch.file("none.trace"), small_header()), Error);
  EXPECT_EQ(content_of(path), small_file());
}

TEST(TraceWriter, ATraceThatRecordsOtherThingsIsNotContinued) {
  const ScratchDirectory scratch;
  const std::string one = scratch.write("1.trace", small_file()),
                    two = scratch.write("2.trace", small_file_2());
  const auto fails = [](const std::string& path, const TraceHeader& header, const std::string& expected,
                        const std::string& found) {
    try {
      TraceWriter::resume(path, header);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.expected_text(), expected);
      EXPECT_EQ(error.found_text(), found);
    }
  };
  const std::string all = "predictions stream, predictions stream+layer, gate inputs of 2 floats";
  fails(one, small_header_2(), all, "the routing alone");
  fails(two, small_header(), "the routing alone", all);
  TraceWriter writer = TraceWriter::resume(two, small_header_2());
  write_small_2(writer);
  writer.close();
  EXPECT_EQ(all_events(*open_trace(two)).size(), 4u);
  EXPECT_EQ(content_of(one), small_file());
}

TEST(TraceWriter, RandomTracesComeBackAsTheyWere) {
  const ScratchDirectory scratch;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    TraceHeader header = small_header();
    header.layers = 1 + random() % 5;
    header.experts = 1 + random() % 70;
    header.top_k = 1 + random() % header.experts;
    header.sizes.emplace(header.layers, header.experts);
    if (seed % 2 == 0) header.ahead = {"b", "a"};
    if (seed % 3 == 0) header.gate_inputs = 1 + random() % 9;
    const std::string path = scratch.file(std::to_string(seed));
    TraceWriter writer = TraceWriter::create(path, header);
    writer.begin_run(Json::object());
    std::vector<OwnedEvent> expected;
    for (std::uint64_t step = 0; step < 6; ++step) {
      OwnedEvent event;
      event.step = step;
      event.phase = random() % 2 ? TracePhase::kDecode : TracePhase::kPrefill;
      event.tokens = 1 + random() % 300;
      for (std::uint32_t t = 0; t < event.tokens; ++t)
        event.token_ids.push_back(static_cast<std::int32_t>(random()));
      const std::uint32_t first = 1 + random() % event.tokens;
      event.sequences.push_back({0, first, 0});
      if (first < event.tokens) event.sequences.push_back({1, event.tokens - first, 0});
      writer.begin_step(event.phase, event.sequences, event.token_ids);
      for (event.layer = 0; event.layer < header.layers; ++event.layer) {
        event.choices.assign(event.tokens, {});
        event.logits.clear();
        event.ahead.clear();
        const auto numbers = [&](std::size_t floats_of_token) {
          std::vector<float> made(event.tokens * floats_of_token);
          for (float& number : made) number = static_cast<float>(random() % 999);
          return made;
        };
        for (const std::string& name : header.ahead)
          if (event.layer > 0 && random() % 4 != 0) {
            event.ahead.emplace_back(name, numbers(header.experts));
            writer.ahead(name, event.ahead.back().second);
          }
        event.gate_inputs = numbers(header.gate_inputs);
        if (header.gate_inputs != 0) writer.gate_inputs(event.gate_inputs);
        for (auto& token : event.choices)
          for (std::uint16_t e = 0; e < header.experts; ++e)
            if (token.size() < header.top_k && random() % 3 == 0)
              token.emplace_back(e, static_cast<float>(random() % 1000));
        for (std::size_t i = 0; i < std::size_t{event.tokens} * header.experts; ++i)
          event.logits.push_back(static_cast<float>(random() % 999));
        writer.layer(event.logits, routing(event.choices));
        expected.push_back(event);
      }
    }
    writer.close();
    const auto trace = open_trace(path);
    EXPECT_EQ(all_events(*trace), expected);
  }
}

}  // namespace
}  // namespace sluice::trace
