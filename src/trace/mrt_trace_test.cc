#include <gtest/gtest.h>

#include <map>

#include "base/float16.h"
#include "trace/testing.h"

namespace sluice::trace::mrt_trace_test {
namespace {

std::string u32(std::uint32_t number) { return {reinterpret_cast<const char*>(&number), 4}; }

struct Mrt {
  std::uint32_t version = 1, layers = 2, experts = 5, k = 2, tokens = 3;
  std::vector<std::uint32_t> sequences = {1, 0, 2};
  std::string ids = std::string(
      "\x03\x01"
      "\x00\x04"
      "\x02\x01"
      "\x01\x02"
      "\x03\x02"
      "\x04\x00",
      12);  // (L, T, k)
  std::vector<std::uint16_t> weights = {0x3800, 0x3400, 0x3000, 0, 0x3c00, 1, 1, 2, 3, 4, 5, 6};

  std::string bytes() const {
    std::string all = "MRT1" + u32(version) + u32(layers) + u32(experts) + u32(k) + u32(tokens) +
                      u32(static_cast<std::uint32_t>(sequences.size()));
    for (const std::uint32_t length : sequences) all += u32(length);
    all += ids;
    for (const std::uint16_t word : weights) all.append(reinterpret_cast<const char*>(&word), 2);
    return all;
  }
};

void fails(const std::string& bytes, const std::string& words) {
  try {
    const auto trace = open_text(bytes);
    all_events(*trace);
    ADD_FAILURE() << "no error for: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_TRUE(error.offset().has_value());
  }
}

TEST(MrtTrace, VisitsTheLayersOfEachTokenInOrderAndSortsItsExperts) {
  const auto trace = open_text(Mrt().bytes());
  EXPECT_EQ(trace->header().format, "mrt");
  EXPECT_EQ(trace->header().layers, 2u);
  EXPECT_FALSE(trace->header().sizes.has_value());
  const std::vector<OwnedEvent> events = all_events(*trace);
  ASSERT_EQ(events.size(), 6u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].step, i / 2);
    EXPECT_EQ(events[i].layer, i % 2);
    EXPECT_EQ(events[i].tokens, 1u);
  }
  using Choices = std::vector<std::pair<std::uint16_t, float>>;
  EXPECT_EQ(events[0].choices[0], (Choices{{1, 0.25f}, {3, 0.5f}}));
  EXPECT_EQ(events[2].choices[0], (Choices{{0, 0.125f}, {4, 0.f}}));
  EXPECT_EQ(events[5].choices[0], (Choices{{0, fp16_to_float(6)}, {4, fp16_to_float(5)}}));
  EXPECT_EQ(events[0].sequences[0], (SequenceMark{0, 1, 0}));
  EXPECT_EQ(events[2].sequences[0], (SequenceMark{2, 1, 0}));  // sequence 1 has no tokens
  EXPECT_EQ(events[4].sequences[0], (SequenceMark{2, 1, 1}));
}

TEST(MrtTrace, EveryPrefixIsAnError) {
  const std::string whole = Mrt().bytes();
  for (std::size_t length = 4; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    EXPECT_THROW(open_text(std::string_view(whole).substr(0, length)), Error);
  }
  fails(whole + "x", "continues behind its last weight");
}

TEST(MrtTrace, WrongContentIsAnErrorThatNamesIt) {
  const auto with = [](auto change) {
    Mrt mrt;
    change(mrt);
    return mrt.bytes();
  };
  fails(with([](Mrt& m) { m.version = 2; }), "version");
  fails(with([](Mrt& m) { m.layers = 0; }), "layers");
  fails(with([](Mrt& m) { m.experts = 257; }), "experts");
  fails(with([](Mrt& m) { m.experts = 4; }), "no such expert");
  fails(with([](Mrt& m) { m.k = 6; }), "experts of a token");
  fails(with([](Mrt& m) { m.tokens = 4; }), "do not cover");
  fails(with([](Mrt& m) {
          m.tokens = 10'000;
          m.sequences = {10'000};
        }),
        "ends too early");
  // Counts larger than the memory limit are refused unread: a compressed file of a few KiB can hold that many
  // bytes.
  fails(with([](Mrt& m) {
          m.tokens = 0xffffffffu;
          m.sequences = {0xffffffffu};
        }),
        "too large to be held");
  fails(with([](Mrt& m) {
          m.layers = 1024;
          m.tokens = 90'000'000;
          m.sequences.assign(1, 90'000'000);
        }),
        "too large to be held");
  fails(with([](Mrt& m) { m.ids[1] = 3; }), "twice");
  fails(with([](Mrt& m) { m.weights[5] = 0x7e00; }), "no probability");  // NaN
  fails(with([](Mrt& m) { m.weights[5] = 0x8400; }), "no probability");  // negative
}

TEST(MrtTrace, ReadsAPieceOfTheRealOne) {
  const auto trace = open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst");
  EXPECT_EQ(trace->header().layers, 26u);
  EXPECT_EQ(trace->header().experts, 64u);
  EXPECT_EQ(trace->header().top_k, 6u);
  const std::vector<OwnedEvent> events = all_events(*trace);
  ASSERT_EQ(events.size(), 26u * 48);
  for (const OwnedEvent& event : events) {
    ASSERT_EQ(event.choices[0].size(), 6u);
    float mass = 0;
    for (const auto& [expert, weight] : event.choices[0]) mass += weight;
    EXPECT_GT(mass, 0.0f);
    EXPECT_LE(mass, 1.01f);  // probabilities of the chosen six
  }
}

}  // namespace
}  // namespace sluice::trace::mrt_trace_test
