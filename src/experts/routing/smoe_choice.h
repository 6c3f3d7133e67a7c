// SMoE's expert-cache router: experts of low score that are not in fast memory give way to experts that are,
// where these score nearly as much. With two tiers of memory above a disk, experts that must be read from
// disk give way first, and where the faster tier has no substitute, to such of the slower one. SMoE (arXiv
// 2508.18983, Alg. 1 and §5.4), its five slips mended; SPEC §2.2.
//
// The experts that a token shall have are sets of exactly k; weights follow from the scores of the set
// (smoe_combine_rule). Only decode steps may be routed so: prompts keep the model's own routing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/routing/router.h"
#include "experts/routing/score_classes.h"
#include "experts/routing/smoe_rules.h"

namespace sluice::experts {

// How near an expert is, of what memory there is; with one tier alone kMissing and kHost.
enum class Reach : std::uint8_t { kMissing, kHost, kDevice };

// The scores of a layer's tokens. Non-owning; (T, N) is row after row.
struct SmoeInput {
  std::uint32_t tokens = 0, experts = 0;          // T, N
  std::uint32_t top_k = 0;                        // REQUIRES: as many selectable experts for each token
  std::span<const double> scores = {};            // (T, N), at least 0: softmax probabilities, never logits
  std::span<const Reach> reach = {};              // (N) …
  Reach resident = Reach::kHost;                  // … from which on an expert counts as resident
  std::span<const std::uint8_t> selectable = {};  // (T, N): what the model's rule may select; empty: all
};

// O(T N log N). Allocates nothing once it has seen the largest step. Thread-compatible.
class SmoeChoice {
 public:
  // Replaces the sets of the last step.
  void choose(const SmoeInput& input, const SmoeRules& rules);

  // Valid until the next choose(); all ascending.
  std::uint32_t tokens() const { return static_cast<std::uint32_t>(begin_.size()) - 1; }
  std::span<const std::uint32_t> set(std::uint32_t token) const;
  std::span<const std::uint32_t> own(std::uint32_t token) const;  // the model's: the top-k of the scores
  // Selected by any token, and not resident.
  std::span<const std::uint32_t> misses() const { return misses_; }
  // Over all tokens: experts of the model's own choice that are not in the set, and the sum of their scores.
  std::uint64_t substitutions() const { return substitutions_; }
  double lost_mass() const { return lost_mass_; }

 private:
  // A low-score expert of a token that must be loaded, and that nothing has replaced so far.
  struct Retained {
    std::uint32_t users = 0;  // tokens that have it in their set, when the list was made
    double score = 0;
    std::uint32_t token = 0, expert = 0;
  };
  enum Mark : std::uint8_t { kOwn = 1, kIn = 2 };  // for a token: in the top-k; in the set

  std::span<const double> row(const SmoeInput& input, std::uint32_t token) const;
  std::span<const std::uint8_t> selectable_row(const SmoeInput& input, std::uint32_t token) const;
  void rank(const SmoeInput& input, double alpha);  // ranked_, tops_, beta_, near_, and marks kOwn
  void choose_token(const SmoeInput& input, double alpha, std::uint32_t token);
  void choose_printed(const SmoeInput& input, double alpha, std::uint32_t token);
  void merge(const SmoeInput& input, double alpha);
  void collect(const SmoeInput& input);  // the sets as callers see them, and the sums

  ScoreClasses classes_;
  std::uint32_t top_k_ = 0;
  std::vector<std::uint32_t> ranked_;  // (T, k): a token's own choice, best score first; …
  std::vector<std::uint32_t> tops_;    // (T): … how many of these are top-score; …
  std::vector<double> beta_;           // (T): … and the border
  std::vector<std::uint8_t> near_;     // (N): resident, or a top-score expert of some token
  std::vector<std::uint8_t> marks_;    // (T, N): Mark
  std::vector<std::uint32_t> users_;   // (N): tokens that have the expert in their set
  std::vector<Retained> retained_;
  std::vector<std::uint32_t> misfits_, alternatives_;          // scratch of one token
  std::vector<std::uint32_t> begin_{0}, sets_, own_, misses_;  // begin_: (T + 1), into sets_; own_: (T, k)
  std::uint64_t substitutions_ = 0;
  double lost_mass_ = 0;
};

// The rule for append_choices (selection.h) that gives a set its weights. own_mass, set_mass: the sums of the
// scores of the token's own choice and of its set.
CombineRule smoe_combine_rule(SmoeRenorm renorm, const CombineRule& model, double own_mass, double set_mass);

}  // namespace sluice::experts
