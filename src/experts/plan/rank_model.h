// The rank model: how likely a step uses the r-th hottest expert of a layer, and the law of the sets of k
// experts that has these probabilities and is otherwise as undetermined as possible (maximum entropy). ZipMoE
// (arXiv 2601.21198) §5.1, App. B; SPEC §1.8.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// Activation counts of one layer in one window (a prompt): by expert, over that many steps.
struct RankWindow {
  std::vector<std::uint64_t> counts;
  std::uint64_t steps = 0;
};

struct RankProfile {
  std::vector<double> f;  // by rank, descending; Σ f = k; empty if no window was used
  std::size_t used = 0;   // windows that were not skipped
};

// Scales f so that it sums to k. Entries that would exceed 1 - 1e-6 are cut to that, and the others share the
// rest in proportion, or evenly if all of them are 0. The sum is smaller only if f has too few entries.
void scale_to(double k, std::vector<double>& f);

// Sorts each window's frequencies separately (identities move between prompts) and averages them. Skips
// windows of fewer than 64 steps: their order statistics would inflate the head. k: the wanted sum, which is
// top-k or, for a batch, the mean number of distinct experts a step; a different sum is scaled to k, with
// entries cut at 1 - 1e-6. REQUIRES: counts of equal length. Error(kInvalid) if the counted windows have no
// activations at all.
RankProfile make_rank_profile(std::span<const RankWindow> windows, double k);

enum class WeightUpdate {
  kOdds,   // w *= odds(f) / odds(f_t): same fixed point, far fewer iterations
  kRatio,  // w *= f / f_t: the paper's eq. 24, mended (SPEC §1.8)
};

// Sets of k of N experts, each with probability ∝ the product of its members' w.
struct RankModel {
  std::uint32_t k = 0;
  // (N) geometric mean 1 over the experts with 0 < f < 1; 0 where f = 0; infinity where f = 1.
  std::vector<double> w;
  // (N) probabilities of independent draws that have this law, given that k are drawn; Σ q = k.
  std::vector<double> q;
  std::vector<double> phi;  // (N + 1) the probability that h are drawn
  std::uint32_t iterations = 0;
};

// Inclusion probabilities of each expert in a set of k with these weights, by prefix and suffix tables of
// elementary symmetric polynomials: O(N k), without division by a weight.
std::vector<double> inclusion(std::span<const double> w, std::uint32_t k);

// f (N): Σ f = k within 1e-6 of k, each in [0, 1], else Error(kInvalid); values within 1e-12 of 0 or 1 count
// as 0 or 1. Stops when all inclusion probabilities are within `tolerance` of f, or after 20000 updates.
RankModel make_rank_model(std::span<const double> f, std::uint32_t k,
                          WeightUpdate update = WeightUpdate::kOdds, double tolerance = 1e-10);

// The law of the number of successes among independent draws: (m + 1). ZipMoE Alg. 2.
std::vector<double> poisson_binomial(std::span<const double> q);

}  // namespace sluice::experts
