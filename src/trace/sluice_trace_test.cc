// The reader against docs/trace-format.md.
#include "trace/sluice_trace.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trace/example_traces.h"
#include "trace/testing.h"

namespace sluice::trace {
namespace {

TEST(TraceFormat, ReaderHandsOutPredictionsAndGateInputsWithTheirLayer) {
  const auto trace = open_text(small_file_2());
  EXPECT_EQ(trace->header().ahead, (std::vector<std::string>{"stream", "stream+layer"}));
  EXPECT_EQ(trace->header().gate_inputs, 2u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  EXPECT_FALSE(trace->cut_off());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].ahead.empty());
  EXPECT_EQ(events[0].gate_inputs, (std::vector<float>{0.5f, -0.5f}));
  ASSERT_EQ(events[1].ahead.size(), 2u);
  EXPECT_EQ(events[1].ahead[0], std::pair("stream" + std::string(), std::vector<float>{4, 5, 6}));
  EXPECT_EQ(events[1].ahead[1], std::pair("stream+layer" + std::string(), std::vector<float>{7, 8, 9}));
  EXPECT_EQ(events[1].gate_inputs, (std::vector<float>{0.25f, -0.25f}));
  EXPECT_EQ(events[1].logits, (std::vector<float>{3, 2, 1}));
}

TEST(TraceFormat, ATraceThatTheFirstVersionsProgramWroteIsRead) {
  const auto trace = open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/fable.v1.trace.zst");
  EXPECT_EQ(trace->header().layers, 6u);
  EXPECT_EQ(trace->header().experts, 32u);
  EXPECT_TRUE(trace->header().ahead.empty());
  EXPECT_EQ(trace->header().gate_inputs, 0u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  EXPECT_FALSE(trace->cut_off());
  ASSERT_EQ(events.size(), 5u * 6);
  for (const OwnedEvent& event : events) EXPECT_EQ(event.logits.size(), event.tokens * std::size_t{32});
}

TEST(TraceFormat, ReaderTellsWhatThePageSays) {
  const auto trace = open_text(small_file());
  EXPECT_EQ(trace->header().architecture, "qwen2_moe");
  EXPECT_EQ(trace->header().identity, 0x0123456789abcdefu);
  EXPECT_TRUE(*trace->header().sizes == *small_header().sizes);
  EXPECT_EQ(trace->header().sizes->bytes({1, 2}).exp, 102u);
  EXPECT_EQ(trace->header().sizes->disk_bytes({0, 0}), 8192u);
  EXPECT_EQ(trace->header().sizes->exp_disk_bytes({1, 1}), 512u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  EXPECT_FALSE(trace->cut_off());
  ASSERT_EQ(events.size(), 4u);
  const OwnedEvent expected{.step = 0,
                            .layer = 1,
                            .tokens = 2,
                            .phase = TracePhase::kPrefill,
                            .choices = {{{0, 0.5f}, {1, 0.25f}}, {{2, 1.f}}},
                            .logits = {9, 8, 7, 6, 5, 4},
                            .sequences = {{0, 2, 0}},
                            .token_ids = {7, 9}};
  EXPECT_EQ(events[1], expected);
  EXPECT_EQ(events[3].phase, TracePhase::kDecode);
  EXPECT_EQ(events[3].token_ids, std::vector<std::int32_t>{-3});
  EXPECT_EQ(events[3].sequences, (std::vector<SequenceMark>{{0, 1, 2}}));
}

// `cuts_between_steps`: prefixes that end where a step or a run may begin.
void expect_prefixes_are_read(const std::string& whole, std::size_t start, std::size_t cuts_between_steps) {
  const std::vector<OwnedEvent> all = all_events(*open_text(whole));
  std::size_t cuts = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string_view prefix = std::string_view(whole).substr(0, length);
    if (length < start) {
      EXPECT_THROW(open_text(prefix), Error);
      continue;
    }
    const auto trace = open_text(prefix);
    const std::vector<OwnedEvent> events = all_events(*trace);
    ASSERT_LE(events.size(), all.size());
    EXPECT_TRUE(std::equal(events.begin(), events.end(), all.begin()));
    cuts += !trace->cut_off();
  }
  EXPECT_EQ(cuts, cuts_between_steps);
}

TEST(TraceFormat, EveryPrefixIsReadUpToItsLastWholeRecord) {
  // Before the run, before its first step, and before the second.
  expect_prefixes_are_read(small_file(), file_start(kSmallJson).size(), 3);
  expect_prefixes_are_read(small_file_2(), file_start(kSmallJson2, 2).size(), 2);
}

void expect_flips_are_errors(const std::string& whole) {
  const std::vector<OwnedEvent> all = all_events(*open_text(whole));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    std::size_t events = 0;
    try {
      const auto trace = open_text(bytes);
      TraceEvent event;
      while (trace->next(event)) ASSERT_EQ(checked_event(trace->header(), event), all[events++]);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_TRUE(error.offset().has_value()) << error.what();
    }
  }
}

TEST(TraceFormat, EveryFlippedByteIsAnErrorAndNeverAnotherNumber) {
  expect_flips_are_errors(small_file());
  expect_flips_are_errors(small_file_2());
}

TEST(TraceFormat, ReaderTellsWhatRunsPlayed) {
  const std::string start = file_start(kSmallJson),
                    steps = small_file().substr((start + record(1, kRunJson)).size());
  const auto played = [](const std::string& bytes) {
    const auto trace = open_text(bytes);
    all_events(*trace);
    return trace->played();
  };
  const auto run = [](const std::string& routing) { return record(1, R"({"routing":)" + routing + "}"); };
  EXPECT_EQ(played(small_file()), "");
  EXPECT_EQ(played(start + run(R"("recorded from a")") + steps), "recorded from a");
  EXPECT_EQ(played(start + run(R"("recorded from a\u001bb")") + steps), "recorded from a\\x1bb");
  for (const char* other : {R"("")", "7", R"(["a"])"}) EXPECT_EQ(played(start + run(other) + steps), "");
  EXPECT_EQ(played(start + record(1, R"(["routing"])") + steps), "");
  // Runs that begin behind the steps of the first one.
  EXPECT_EQ(played(small_file() + run(R"("ab")") + run(R"("a")") + run(R"("ab")")), "ab, and a");
  std::string many = small_file(), named;
  for (int i = 0; i < 12; ++i) many += run('"' + std::to_string(i) + '"');
  for (int i = 0; i < 8; ++i) named += std::to_string(i) + ", and ";
  EXPECT_EQ(played(many), named + "others");
}

TEST(TraceFormat, ReaderTellsBesideWhichDevicesRunsComputed) {
  const std::string start = file_start(kSmallJson),
                    steps = small_file().substr((start + record(1, kRunJson)).size());
  const auto devices = [](const std::string& bytes) {
    const auto trace = open_text(bytes);
    all_events(*trace);
    return trace->devices();
  };
  const auto run = [](const std::string& device) { return record(1, R"({"device":)" + device + "}"); };
  const std::string lru = R"({"cache":"lru","placement":"device","slots":8})";
  const std::string lru_text = recorded_device("lru", "device", 8);
  EXPECT_EQ(lru_text, "cache lru, placement device, 8 slots of each layer");
  EXPECT_EQ(devices(small_file()), "");
  EXPECT_EQ(devices(start + run(lru) + steps), lru_text);
  EXPECT_EQ(devices(start + run(lru) + steps + run(lru)), lru_text);
  EXPECT_EQ(devices(start + run(lru) + steps + run(R"({"cache":"lfu","placement":7,"slots":-1})")),
            lru_text + ", and " + recorded_device("lfu", "unknown", 0));
  EXPECT_EQ(devices(start + run("[]") + steps), "");
}

TEST(TraceFormat, WhatAHeaderClaimsIsBounded) {
  const std::string start = file_start(
      R"({"architecture":"a","experts":65536,"identity":"0123456789abcdef","layers":17,"sizes":{},"top_k":1})");
  try {
    open_text(start);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.expected_text(), "at most 1048576 experts in all layers");
  }
}

// Well-formed records with wrong content.
TEST(TraceFormat, WrongContentIsAnErrorThatNamesIt) {
  const std::string start = file_start(kSmallJson), run = record(1, kRunJson);
  const std::string step = record(2, u64(0) + u32(0) + u32(1) + u32(1) + u32(0) + u32(1) + u32(0) + u32(7));
  const auto layer = [](std::uint32_t number, std::uint16_t expert, float weight, float logit) {
    return record(3, u64(0) + u32(number) + u32(1) + u32(1) + u32(0) + u32(1) + le(expert) + le(weight) +
                         le(logit) + le(2.f) + le(3.f));
  };
  const auto fails = [&](const std::string& records, const std::string& words) {
    try {
      const auto trace = open_text(start + records);
      all_events(*trace);
      ADD_FAILURE() << "no error for: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const float nan = std::nanf("");
  EXPECT_EQ(all_events(*open_text(start + run + step + layer(0, 1, 1.f, 1.f) + layer(1, 1, 1.f, 1.f))).size(),
            2u);
  const std::string head = u32(2) + u32(0xffffffffu);  // a record of 4 GiB
  fails(run + head + sum(head).substr(0, 4) + std::string(100, '\0'), "too large to be held");
  fails(step, "a run record");
  fails(run + layer(0, 1, 1.f, 1.f), "a run or a step record");
  fails(run + step + step, "the record of layer 0");
  fails(run + step + run, "the record of layer 0");
  fails(run + step + layer(1, 1, 1.f, 1.f), "a layer is missing");
  fails(run + step + layer(0, 3, 1.f, 1.f), "no such expert");
  fails(run + step + layer(0, 1, nan, 1.f), "a weight is not a number");
  fails(run + step + layer(0, 1, 1.f, nan), "a logit is not a number");
  fails(record(4, ""), "unknown kind of record");
  fails(record(1, "{"), "run");
  fails(run + record(2, u64(1) + u32(0) + u32(1) + u32(1) + u32(0) + u32(1) + u32(0) + u32(7)),
        "a step is missing");
  fails(run + record(2, u64(0) + u32(2) + u32(1) + u32(1) + u32(0) + u32(1) + u32(0) + u32(7)),
        "unknown phase");
  fails(run + record(2, u64(0) + u32(0) + u32(0) + u32(1) + u32(0) + u32(0) + u32(0)),
        "counts are out of range");
  fails(run + record(2, u64(0) + u32(0) + u32(0xffffffffu) + u32(1) + u32(0)), "length does not follow");
  fails(run + record(2, u64(0) + u32(0) + u32(1) + u32(1) + u32(5) + u32(1) + u32(0) + u32(7)),
        "numbered as they appear");
  fails(run + record(2, u64(0) + u32(0) + u32(1) + u32(1) + u32(0) + u32(2) + u32(0) + u32(7)),
        "do not cover");
  fails(run + step + record(3, u64(0) + u32(0) + u32(1) + u32(3)), "more choices than the model makes");
  fails(run + step +
            record(3, u64(0) + u32(0) + u32(1) + u32(2) + u32(0) + u32(2) + le(std::uint16_t{1}) +
                          le(std::uint16_t{1}) + le(1.f) + le(1.f) + le(1.f) + le(1.f) + le(1.f)),
        "not ascending");
  fails(run + step +
            record(3, u64(0) + u32(0) + u32(1) + u32(1) + u32(0xffffffffu) + u32(1) + le(std::uint16_t{1}) +
                          le(1.f) + le(1.f) + le(1.f) + le(1.f)),
        "do not cover the choices");
}

TEST(TraceFormat, WrongContentOfVersion2IsAnErrorThatNamesIt) {
  const std::string start = file_start(kSmallJson2, 2) + record(1, kRunJson) +
                            record(2, u64(0) + u32(1) + u32(1) + u32(1) + u32(0) + u32(1) + u32(9) + u32(7));
  const auto inputs = [](std::uint32_t layer, float second) {
    return record(5, layer_fields(0, layer, 1) + le(0.5f) + le(second));
  };
  const auto layer = [](std::uint32_t number) {
    return record(3, layer_fields(0, number, 1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{1}) + le(1.f) +
                         le(1.f) + le(2.f) + le(3.f));
  };
  const auto ahead = [](std::uint32_t number, const std::string& name, float first = 1.f) {
    return record(4, layer_fields(0, number, 1) + u32(name.size()) + name + le(first) + le(2.f) + le(3.f));
  };
  const auto fails = [&](const std::string& records, const std::string& words) {
    try {
      all_events(*open_text(start + records));
      ADD_FAILURE() << "no error for: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const float nan = std::nanf("");
  const std::string first = inputs(0, 1.f) + layer(0);
  // Predictions are optional, one by one.
  EXPECT_EQ(all_events(*open_text(start + first + inputs(1, 1.f) + layer(1))).size(), 2u);
  EXPECT_EQ(
      all_events(*open_text(start + first + ahead(1, "stream+layer") + inputs(1, 1.f) + layer(1))).size(),
      2u);
  fails(record(6, ""), "unknown kind of record");
  fails(layer(0), "gate inputs of a layer are missing");
  fails(inputs(0, 1.f) + inputs(0, 1.f), "gate inputs are out of order");
  fails(inputs(0, nan), "a gate input is not a number");
  fails(record(5, layer_fields(0, 0, 1) + le(0.5f)), "length does not follow");
  fails(inputs(1, 1.f), "a layer is missing");
  fails(record(5, layer_fields(1, 0, 1) + le(0.5f) + le(0.5f)), "a layer of another step");
  fails(ahead(0, "stream"), "a prediction is out of order");
  fails(first + ahead(1, "other"), "a prediction is out of order");
  fails(first + ahead(1, "stream") + ahead(1, "stream"), "a prediction is out of order");
  fails(first + ahead(1, "stream+layer") + ahead(1, "stream"), "a prediction is out of order");
  fails(first + inputs(1, 1.f) + ahead(1, "stream"), "a prediction is out of order");
  fails(first + ahead(1, "stream", nan), "a predicted logit is not a number");
  fails(first + record(4, layer_fields(0, 1, 1) + u32(0xffffffffu)), "name of a predictor is too long");
  fails(first + record(4, layer_fields(0, 1, 1)), "length does not follow");
  fails(first + record(4, layer_fields(0, 1, 2) + u32(6) + "stream"), "not those of its step");
}

TEST(TraceFormat, WrongHeadersAreErrors) {
  std::uint32_t version = 1;
  const auto fails = [&](std::string json, const std::string& from, const std::string& to,
                         const std::string& words) {
    const std::size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos);
    json.replace(at, from.size(), to);
    try {
      open_text(file_start(json, version));
      ADD_FAILURE() << "no error for " << json;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  fails(kSmallJson, "\"layers\":2", "\"layers\":0", "layers");
  fails(kSmallJson, "\"top_k\":2", "\"top_k\":4", "top_k");
  fails(kSmallJson, "\"experts\":3", "\"experts\":4", "exp");
  fails(kSmallJson, "0123456789abcdef", "x", "identity");
  fails(kSmallJson, "[4096,4096]", "[4096,-1]", "full");
  fails(kSmallJson, "[4096,4096]", "[4096]", "full");
  fails(kSmallJson, "\"disk\"", "\"dusk\"", "disk");
  version = 2;
  fails(kSmallJson2, "\"gate_inputs\":2", "\"gate_inputs\":1048577", "gate_inputs");
  fails(kSmallJson2, "\"gate_inputs\":2,", "", "gate_inputs");
  fails(kSmallJson2, "\"stream+layer\"", "\"stream\"", "ahead");
  fails(kSmallJson2, "\"stream+layer\"", "\"Stream\"", "ahead");
  fails(kSmallJson2, "\"stream+layer\"", "\"\"", "ahead");
  fails(kSmallJson2, "\"stream+layer\"", "\"" + std::string(65, 'a') + "\"", "ahead");
  fails(kSmallJson2, "[\"stream\",\"stream+layer\"]", "7", "ahead");
  std::string nothing = kSmallJson2;
  nothing.replace(nothing.find("\"stream\""), std::string("\"stream\",\"stream+layer\"").size(), "");
  fails(nothing, "\"gate_inputs\":2", "\"gate_inputs\":0", "ahead");  // then the version is 1
  std::string other = file_start(kSmallJson);
  other[8] = 3;
  try {
    open_text(other);
    ADD_FAILURE() << "no error for version 3";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_EQ(error.expected_text(), "1 or 2");
    EXPECT_EQ(error.found_text(), "3");
  }
  EXPECT_THROW(open_text("GGUF and so on"), Error);
  EXPECT_THROW(open_trace("/nonexistent.trace"), Error);
}

}  // namespace
}  // namespace sluice::trace
