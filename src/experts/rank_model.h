// The rank model: how likely the r-th hottest expert of a layer is used in a step, and the law of the sets of
// k experts that has these probabilities and is otherwise as undetermined as can be (maximum entropy). ZipMoE
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
  std::size_t used = 0;   // windows not skipped
};

// Scales f so that it sums to k. Entries that would be above 1 - 1e-6 are set to that, and the others share
// what is left in proportion, or evenly if all of them are 0. The sum is less only if f has too few entries.
void scale_to(double k, std::vector<double>& f);

// Sorts each window's frequencies by itself (identities move between prompts) and averages them. Windows of
// fewer than 64 steps are skipped: their order statistics would inflate the head. k: the sum wanted, top-k
// or, of a batch, the mean number of distinct experts a step; if it is not the sum already, f is scaled, with
// entries cut at 1 - 1e-6. REQUIRES: counts of equal length. Error(kInvalid) if the windows that count have
// no activations at all.
RankProfile make_rank_profile(std::span<const RankWindow> windows, double k);

enum class WeightUpdate {
  kOdds,   // w *= odds(f) / odds(f_t): same fixed point, far fewer iterations
  kRatio,  // w *= f / f_t: the paper's eq. 24, mended (SPEC §1.8)
};

// Sets of k of N experts, each with probability ∝ the product of its members' w.
struct RankModel {
  std::uint32_t k = 0;
  std::vector<double>
      w;  // (N) geometric mean 1 over those with 0 < f < 1; 0 where f = 0; infinity where f = 1
  std::vector<double> q;    // (N) of independent draws that, given that k are drawn, have this law; Σ q = k
  std::vector<double> phi;  // (N + 1) the probability that h are drawn
  std::uint32_t iterations = 0;
};

// Inclusion probabilities of each expert in a set of k with these weights, by prefix and suffix tables of
// elementary symmetric polynomials: O(N k), and no division by a weight.
std::vector<double> inclusion(std::span<const double> w, std::uint32_t k);

// f (N): Σ f = k to 1e-6 of it, each in [0, 1], else Error(kInvalid); those within 1e-12 of 0 or 1 count as
// that. Stops when all inclusion probabilities are within `tolerance` of f, or after 20000 updates.
RankModel make_rank_model(std::span<const double> f, std::uint32_t k,
                          WeightUpdate update = WeightUpdate::kOdds, double tolerance = 1e-10);

// The law of the number of successes among independent draws: (m + 1). ZipMoE Alg. 2.
std::vector<double> poisson_binomial(std::span<const double> q);

}  // namespace sluice::experts
