// How many tokens to draft: as many as win more than the step that computes them costs. Measured costs and
// odds go in, numbers come out. docs/drafts.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/draft_kind.h"

namespace sluice::engine {

// What a step that decodes took.
struct DecodeCost {
  double seconds = 0;
  double moe_s = 0;                 // part of it: from the routers' scores to the experts' sums
  double demand_s = 0;              // part of that: reads that the step waited for, or computed beside
  double accesses = 0, misses = 0;  // experts, over all layers
};

// The drafts of a step.
struct DraftShape {
  std::size_t sequences = 1;                      // that it decodes
  std::array<std::size_t, kMostDrafts> tokens{};  // sequences that have a first, a second … drafted token

  std::size_t drafted() const;
};
DraftShape shape_of(std::span<const std::size_t> drafts);  // how many drafts each sequence has

// What one sequence could have computed ahead: how likely it is that at least 1, 2 … tokens come true.
struct DraftOffer {
  std::size_t count = 0;
  std::array<double, kMostDrafts> chance{};
};

// kAlways is for tests: whatever they cost.
enum class DraftWhen : std::uint8_t { kPays, kAlways };

// Thread-compatible.
class DraftGuard {
 public:
  void set_when(DraftWhen when) { when_ = when; }

  // By b: experts of a token, over all layers, that none of the b tokens before it uses.
  using FreshMeans = std::array<double, kMostDrafts + 1>;

  // A step has ended.
  void count(const DraftShape& shape, const DecodeCost& cost, const FreshMeans& fresh);
  // Sets how many tokens of each offer are computed, `most` of all together; one offer for each sequence that
  // the step decodes. All 0 unless it pays, and until steps without drafts have shown what one costs.
  void choose(std::span<const DraftOffer> offers, std::size_t most, std::span<std::size_t> counts);

  // What a step is expected to take. 0: nobody knows yet.
  double seconds(const DraftShape& shape) const;

 private:
  // The mean of late steps without drafts.
  struct Plain {
    DecodeCost mean{};
    double seen = 0;
  };
  // What was counted counts as this many steps, until steps show what is true.
  static constexpr double kExpectedSteps = 2;
  struct Beside {
    double measured = 0, expected = 0;  // seconds that drafts added, and as counted; fading sums
    double prior = kExpectedSteps;
  };

  static void choose_all(std::span<const DraftOffer> offers, std::size_t most, std::span<std::size_t> counts);
  const Plain* plain(std::size_t sequences) const;  // null: too few were seen
  // Seconds that the drafts add, as the counts of experts say …
  double counted_seconds(const Plain& plain, const DraftShape& shape) const;
  // … and as steps have shown.
  double added_seconds(const Plain& plain, const DraftShape& shape) const;

  DraftWhen when_ = DraftWhen::kPays;
  FreshMeans fresh_{};
  std::vector<Plain> plain_;                  // by sequences - 1
  std::array<Beside, kMostDrafts> beside_{};  // by drafted tokens - 1; the last one is of more, too
  std::size_t since_plain_ = 0;               // steps with drafts since the last one without
};

}  // namespace sluice::engine
