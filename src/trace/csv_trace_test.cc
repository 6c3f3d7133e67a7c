#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/files/scratch_directory.h"
#include "trace/testing.h"
#include "trace/trace_kinds.h"

namespace sluice::trace {
namespace {

const std::string kHead =
    "# route_trace v1\n"
    "# model=x.gguf arch=qwen3moe n_layer=2 n_expert=4 n_expert_used=2\n"
    "# layer=0 expert_bytes=100 dense_bytes=7\n"
    "# layer=1 expert_bytes=200 dense_bytes=7\n"
    "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n";
// Three prompt tokens, of which layer 1 routes only the last; two decode steps.
const std::string kRows =
    "0,0,0,0,0,3,0.5,0,100\n0,0,0,0,1,1,0.25,0,100\n0,0,1,0,0,1,0.5,0,0\n0,0,1,0,1,3,0.25,0,0\n"
    "0,0,2,0,0,2,0.5,0,100\n0,0,2,0,1,1,0.25,0,0\n0,0,2,1,0,2,0.5,0,200\n0,0,2,1,1,0,0.25,0,200\n"
    "0,1,3,0,0,1,0.5,1,0\n0,1,3,0,1,0,0.25,0,100\n0,1,3,1,0,2,0.5,1,0\n0,1,3,1,1,1,0.25,0,200\n"
    "0,1,4,0,0,3,0.5,1,0\n0,1,4,0,1,0,0.25,1,0\n0,1,4,1,0,0,0.5,1,0\n0,1,4,1,1,1,1e-3,1,0\n";

void fails(const std::string& text, const std::string& words) {
  try {
    const auto trace = open_text(text);
    all_events(*trace);
    ADD_FAILURE() << "no error for: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CsvTrace, PrefillRowsOfALayerAreOneEventAndDecodeStepsTheirOwn) {
  const auto trace = open_text(kHead + kRows);
  EXPECT_EQ(trace->header().format, "csv");
  EXPECT_EQ(trace->header().architecture, "qwen3moe");
  EXPECT_EQ(trace->header().experts, 4u);
  EXPECT_EQ(trace->header().top_k, 2u);
  EXPECT_EQ(trace->header().sizes->bytes({1, 3}).full, 200u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  ASSERT_EQ(events.size(), 6u);
  using Tokens = std::vector<std::vector<std::pair<std::uint16_t, float>>>;
  EXPECT_EQ(events[0].choices,
            (Tokens{{{1, 0.25f}, {3, 0.5f}}, {{1, 0.5f}, {3, 0.25f}}, {{1, 0.25f}, {2, 0.5f}}}));
  EXPECT_EQ(events[1].choices, (Tokens{{{0, 0.25f}, {2, 0.5f}}}));
  EXPECT_EQ(events[1].step, 0u);
  EXPECT_EQ(events[1].phase, TracePhase::kPrefill);
  EXPECT_EQ(events[5].step, 2u);
  EXPECT_EQ(events[5].layer, 1u);
  EXPECT_EQ(events[5].phase, TracePhase::kDecode);
}

TEST(CsvTrace, ASecondTurnIsAPrefillOfItsOwn) {
  const auto trace = open_text(
      kHead + kRows + "1,0,0,0,0,3,0.5,0,0\n1,0,0,0,1,1,0.5,0,0\n1,0,0,1,0,3,0.5,0,0\n1,0,0,1,1,1,0.5,0,0\n");
  EXPECT_EQ(all_events(*trace).size(), 8u);
}

TEST(CsvTrace, CarriageReturnsAndAMissingLastLineEndAreRead) {
  std::string text;
  for (const char c : kHead + kRows) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(all_events(*open_text(text)).size(), 6u);
  EXPECT_EQ(all_events(*open_text((kHead + kRows).substr(0, (kHead + kRows).size() - 1))).size(), 6u);
  EXPECT_TRUE(all_events(*open_text(kHead)).empty());
}

TEST(CsvTrace, WrongContentIsAnErrorThatNamesIt) {
  const std::string good = kHead + kRows;
  fails(replaced(good, "v1", "v2"), "version");
  fails(replaced(good, "n_layer=2", "n_layer=0"), "n_layer");
  fails(replaced(good, "n_expert=4", "n_expert=-4"), "n_expert");
  fails(replaced(good, "n_expert_used=2", "n_expert_used=5"), "n_expert_used");
  fails(replaced(good, "n_layer=2 ", ""), "shape");
  fails(replaced(good, "# layer=1", "# layer=0"), "twice");
  fails(replaced(good, "# layer=1", "# layer=2"), "every layer");
  fails(replaced(good, "turn,phase", "phase,turn"), "column names");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100", "0,0,0,0,0,4,0.5,0,100"), "expert from 0 to 3");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100", "0,0,0,0,0,3,nan,0,100"), "no probability");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100", "0,0,0,0,0,3,0.5,0"), "number of columns");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100", "0,0,0,0,0,3,0.5,0,100,9"), "number of columns");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100", "0,0,0,0,0,1,0.5,0,100"), "twice in one token");
  fails(replaced(good, "0,0,0,0,0,3,0.5,0,100\n", ""), "slot 0");
  fails(replaced(good, "0,1,4,0,0,3", "0,1,2,0,0,3"), "not in order");
  fails(kHead + kRows + kRows, "not in order");
  fails(good + std::string(70000, '1'), "too long");
}

TEST(CsvTrace, AFileThatWasCutOffIsAnErrorUnlessWholeStepsAreLeft) {
  const std::string rows = kRows;
  std::size_t good = 0;
  for (std::size_t length = 0; length <= rows.size(); ++length) {
    SCOPED_TRACE(length);
    // A cut within the last number of a row looks like a shorter number, and that column is not used.
    try {
      all_events(*open_text(kHead + rows.substr(0, length)));
      ++good;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.find("cut off") != std::string::npos || text.find("found \"\"") != std::string::npos)
          << text;
    }
  }
  EXPECT_EQ(good, 1 + (3 + 1) + (3 + 1) + 2u);  // nothing; after the prefill and each decode step
}

TEST(CsvTrace, ReadsTheRealOneCompressed) {
  const auto trace = open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst");
  EXPECT_EQ(trace->header().layers, 48u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  EXPECT_EQ(events.size(), 6192u);  // "batches 6192 (48 prefill + 6144 decode)", as published
  EXPECT_EQ(events[0].tokens, 28u);
  EXPECT_EQ(events[47].tokens, 1u);  // the last layer routes only the token whose logits are wanted
}

TEST(CsvTrace, WhatAHeaderClaimsIsBounded) {
  std::string head = "# route_trace v1\n# model=x n_layer=4096 n_expert=4096 n_expert_used=1\n";
  for (int layer = 0; layer < 4096; ++layer) head += "# layer=" + std::to_string(layer) + " expert_bytes=1\n";
  fails(head + "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n", "4096 layers of 4096");
}

TEST(CsvTrace, AStepThatIsTooLargeIsAnError) {
  const std::string text = kHead + kRows;
  const auto open = [&](Bytes most) {
    return read_csv_trace(std::make_unique<TraceInput>(
        bytes_in_memory(std::as_bytes(std::span(text.data(), text.size())), "input"), most));
  };
  const Bytes prefill = 4 * (2 * sizeof(experts::Choice) + 4);  // four tokens of two experts
  EXPECT_EQ(all_events(*open(prefill)).size(), 6u);
  try {
    all_events(*open(prefill - 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "a step of the trace is too large to be held in memory");
    EXPECT_TRUE(error.offset().has_value());
  }
}

TEST(CsvTrace, ACompressedFileThatWasCutOffIsAnError) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string whole = read_text_file(SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst", kMiB);
  for (const std::size_t length : {whole.size() / 2, whole.size() - 1}) {
    const std::string path = scratch.write("cut.csv.zst", whole.substr(0, length));
    EXPECT_THROW(all_events(*open_trace(path)), Error) << length;
  }
  std::string broken = whole;
  broken[0] = 'x';
  EXPECT_THROW(open_trace(scratch.write("broken.csv.zst", broken)), Error);
}

}  // namespace
}  // namespace sluice::trace
