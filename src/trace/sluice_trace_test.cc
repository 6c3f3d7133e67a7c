// docs/trace-format.md, written byte by byte from that page only, against the writer and the reader.
#include "trace/sluice_trace.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/files/scratch_directory.h"
#include "trace/testing.h"
#include "trace/trace_writer.h"

namespace sluice::trace {
namespace {

using sluice::testing::ScratchDirectory;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Number>
std::string le(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
std::string u32(std::uint64_t number) { return le(static_cast<std::uint32_t>(number)); }
std::string u64(std::uint64_t number) { return le(number); }
std::string sum(const std::string& bytes) { return u64(XXH3_64bits(bytes.data(), bytes.size())); }

std::string record(std::uint32_t kind, const std::string& payload) {
  const std::string head = u32(kind) + u32(payload.size());
  return head + sum(head).substr(0, 4) + payload + sum(payload);
}
std::string file_start(const std::string& json, std::uint32_t version = 1) {
  const std::string start = "SLTRACE\n" + u32(version) + u32(json.size()) + json;
  return start + sum(start);
}

// Two layers of three experts, top 2; layer 1's experts differ in size.
TraceHeader small_header() {
  TraceHeader header;
  header.format = "trace";
  header.architecture = "qwen2_moe";
  header.layers = 2;
  header.experts = 3;
  header.top_k = 2;
  header.identity = 0x0123456789abcdefu;
  header.sizes.emplace(2, 3);
  for (std::uint16_t e = 0; e < 3; ++e) {
    header.sizes->set({0, e}, {.full = 4096}, 8192);
    header.sizes->set({1, e}, {.full = 4096, .sm = 2048, .exp = 100u + e}, 8192, 512);
  }
  return header;
}
const std::string kSmallJson =
    R"({"architecture":"qwen2_moe","experts":3,"identity":"0123456789abcdef","layers":2,"sizes":{)"
    R"("disk":[8192,8192],"exp":[0,[100,101,102]],"exp_disk":[0,512],"full":[4096,4096],"sm":[0,2048]},"top_k":2})";
const std::string kRunJson = R"({"cache":"lru","seed":0})";

// One prefill step of two tokens and one decode step of one; the second token of layer 1 has one expert only.
std::string small_file() {
  std::string bytes = file_start(kSmallJson) + record(1, kRunJson);
  bytes += record(2, u64(0) + u32(0) + u32(2) + u32(1) + u32(0) + u32(2) + u32(0) + le(std::int32_t{7}) +
                         le(std::int32_t{9}));
  bytes += record(3, u64(0) + u32(0) + u32(2) + u32(4) + u32(0) + u32(2) + u32(4) + le(std::uint16_t{0}) +
                         le(std::uint16_t{2}) + le(std::uint16_t{1}) + le(std::uint16_t{2}) + le(0.5f) +
                         le(0.25f) + le(0.125f) + le(0.75f) + le(1.f) + le(-1.f) + le(2.f) + le(0.f) +
                         le(3.f) + le(4.f));
  bytes += record(3, u64(0) + u32(1) + u32(2) + u32(3) + u32(0) + u32(2) + u32(3) + le(std::uint16_t{0}) +
                         le(std::uint16_t{1}) + le(std::uint16_t{2}) + le(0.5f) + le(0.25f) + le(1.f) +
                         le(9.f) + le(8.f) + le(7.f) + le(6.f) + le(5.f) + le(4.f));
  bytes += record(2, u64(1) + u32(1) + u32(1) + u32(1) + u32(0) + u32(1) + u32(2) + le(std::int32_t{-3}));
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    bytes += record(3, u64(1) + u32(layer) + u32(1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{1}) +
                           le(1.f) + le(1.f) + le(2.f) + le(3.f));
  return bytes;
}

// The same model; predictions of two predictors, and gate inputs of two floats.
TraceHeader small_header_2() {
  TraceHeader header = small_header();
  header.ahead = {"stream", "stream+layer"};
  header.gate_inputs = 2;
  return header;
}
const std::string kSmallJson2 = R"({"ahead":["stream","stream+layer"],)" +
                                kSmallJson.substr(1, kSmallJson.find("\"identity\"") - 1) +
                                R"("gate_inputs":2,)" + kSmallJson.substr(kSmallJson.find("\"identity\""));

std::string layer_fields(std::uint64_t step, std::uint32_t layer, std::uint32_t tokens) {
  return u64(step) + u32(layer) + u32(tokens);
}

// One decode step of one token, with everything that version 2 adds.
std::string small_file_2() {
  std::string bytes = file_start(kSmallJson2, 2) + record(1, kRunJson);
  bytes += record(2, u64(0) + u32(1) + u32(1) + u32(1) + u32(0) + u32(1) + u32(9) + le(std::int32_t{7}));
  bytes += record(5, layer_fields(0, 0, 1) + le(0.5f) + le(-0.5f));
  bytes += record(3, layer_fields(0, 0, 1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{1}) + le(1.f) +
                         le(1.f) + le(2.f) + le(3.f));
  bytes += record(4, layer_fields(0, 1, 1) + u32(6) + "stream" + le(4.f) + le(5.f) + le(6.f));
  bytes += record(4, layer_fields(0, 1, 1) + u32(12) + "stream+layer" + le(7.f) + le(8.f) + le(9.f));
  bytes += record(5, layer_fields(0, 1, 1) + le(0.25f) + le(-0.25f));
  bytes += record(3, layer_fields(0, 1, 1) + u32(1) + u32(0) + u32(1) + le(std::uint16_t{2}) + le(1.f) +
                         le(3.f) + le(2.f) + le(1.f));
  return bytes;
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

TEST(TraceFormat, WriterMakesTheBytesOfThePage) {
  const ScratchDirectory scratch;
  TraceWriter writer = TraceWriter::create(scratch.file("a.trace"), small_header());
  write_small(writer);
  writer.close();
  EXPECT_EQ(writer.steps(), 2u);
  EXPECT_EQ(content_of(scratch.file("a.trace")), small_file());
  EXPECT_THROW(TraceWriter::create(scratch.file("a.trace"), small_header()), Error);
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

TEST(TraceFormat, WriterMakesTheBytesOfVersion2WhereThereIsMoreThanRouting) {
  const ScratchDirectory scratch;
  TraceWriter writer = TraceWriter::create(scratch.file("a.trace"), small_header_2());
  write_small_2(writer);
  writer.close();
  EXPECT_EQ(content_of(scratch.file("a.trace")), small_file_2());
}

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

TEST(TraceFormat, ARunGivenUpWithoutAStepLeavesWhatWasThere) {
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
  EXPECT_EQ(content_of(path), small_file());  // its steps are kept
  {
    TraceWriter writer = TraceWriter::resume(path, small_header());
    writer.begin_run(Json::object());
    one_layer(writer);
    writer.give_up();
  }
  EXPECT_EQ(content_of(path), small_file());
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

TEST(TraceFormat, ACutFileIsContinuedBehindItsLastWholeStep) {
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

TEST(TraceFormat, AStepThatIsGivenUpLeavesNothingBehind) {
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

TEST(TraceFormat, AnotherModelsTraceIsNotContinued) {
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

TEST(TraceFormat, ATraceThatRecordsOtherThingsIsNotContinued) {
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

TEST(TraceFormat, RandomTracesComeBackAsTheyWere) {
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
