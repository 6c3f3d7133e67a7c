// How likely each expert of a layer is to be used again soon, learned while the layer runs. Ours;
// docs/cache-tournament.md has what it was compared with.
//
// A logistic regression of "used within the next kHorizon events of the layer". Its features of an expert are
// how often it was used (averages that fade with several half-lives, and the plain average), how long ago,
// and how often it was used one event after the experts that the last event used. The weights begin as one
// recorded trace gave them, and follow the layer's own events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace sluice::experts {

// One layer. Experts of higher ids than seen so far may come at any time. Deterministic. An event costs
// O(N * (kFeatures + used experts)), and the memory is 2 bytes for each pair of experts. Thread-compatible.
class ReuseForecast {
 public:
  static constexpr std::size_t kHalfLives = 4;
  static constexpr std::size_t kFeatures = kHalfLives + 6;
  static constexpr std::uint32_t kHorizon = 4;  // events
  // Pairs are not counted among more experts than these: then nothing is known of what follows what.
  static constexpr std::size_t kMostPaired = 1024;

  // The memory of a forecast for so many experts.
  static Bytes bytes(std::size_t experts);

  struct Event {
    std::span<const std::uint16_t> used;    // ascending, distinct
    std::span<const std::uint32_t> tokens;  // that chose each of `used`; empty: one each
    // For a prompt: how many tokens it has, which follow each other in time. 0: a decode step, whose tokens
    // (of several sequences) are one moment.
    std::uint32_t prompt_tokens = 0;
  };
  // Learns from the event, and forecasts anew.
  void on_event(const Event& event);

  // The log odds that the expert is used soon, as of the last event; 1 + the highest id ever used or asked
  // for are known. REQUIRES: index < experts().
  float score(std::size_t index) const { return scores_[index]; }
  std::span<const float> scores() const { return scores_; }
  std::size_t experts() const { return scores_.size(); }
  void grow(std::size_t experts);  // to at least so many
  std::span<const float> weights() const { return weights_; }

 private:
  using Features = std::array<float, kFeatures>;
  using PairCount = std::uint16_t;
  struct Expert {
    std::array<float, kHalfLives> faded{};
    float uses = 0;
    std::uint64_t last = 0;  // event of the last use, from 1 on; 0: never
    // Uses of each expert one event after this one was used, and the events behind a use of this one. All are
    // halved before they grow too large.
    std::vector<PairCount> next;
    std::uint32_t followed = 0;
  };

  void learn();
  void count(const Event& event);
  static void count_pairs(Expert& before, std::span<const std::uint16_t> used);
  void forecast();

  std::uint64_t now_ = 0;  // events so far
  double time_ = 0;        // the same, in which a prompt counts as many as it has tokens
  float per_event_ = 0;    // experts of the last decode event, or an estimate of that
  std::vector<Expert> experts_;
  std::vector<float> scores_, averages_, follows_;
  std::vector<std::uint16_t> used_;  // by the last event
  std::array<std::vector<Features>, kHorizon> past_;
  std::array<float, kFeatures> weights_ = kFirst, squares_ = first_squares();

  static const std::array<float, kFeatures> kFirst;
  static constexpr std::array<float, kFeatures> first_squares() {
    std::array<float, kFeatures> all{};
    all.fill(1e-3f);
    return all;
  }
};

}  // namespace sluice::experts
