// Keeps the miss rate of a run below a limit: by preferring experts in memory, or by replacing missing ones.
// SliceMoE; SPEC §4.4. The routers of router_config.h ask it; the engine and the lab tell it what happened.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "experts/loss_guard.h"
#include "experts/miss_account.h"
#include "experts/residency_view.h"

namespace sluice::experts {

// Where an expert is when a token is routed.
enum class Standing : std::uint8_t {
  kMissing,    // would have to be read
  kPartial,    // its MSB is in memory, where high precision is asked for everywhere
  kResident,   // in memory, as much as any use needs
  kRequested,  // an earlier token of the event has asked for it: costs nothing more
};

// What a selection is measured by. In bytes.
struct MissLimit {
  double rate = 0;                   // m*
  double missed = 0, requested = 0;  // the account so far
  // Of one expert of the layer: what is read of a missing one, of a partial one, and what all are measured
  // by.
  double low_bytes = 0, rest_bytes = 0, high_bytes = 0;
};

struct Replacement {
  std::uint32_t replaced = 0;  // missing experts that made place for resident ones
  bool violation = false;      // still over the limit, and something is missing
  double mass = 0;             // of those that made place, where it is limited
};

// Score mass (by id) that may be lost.
struct MassLimit {
  std::span<const float> mass = {};  // empty: no limit
  double allowed = 0;
};

// While the account with `selection` would be over the limit, the missing expert of the lowest score (ties:
// id ascending) makes place for the best one that was not selected and costs nothing. A partial expert counts
// as missing; and it takes the place of an absent one where none costs nothing. The `top_j` best of the
// ranking are not replaced. `ranking`: experts that may be selected, best first (score descending, id
// ascending); `score` and `standing` by id. Where a loss is limited, what makes place has no more than
// `allowed` of `mass` (by id) altogether.
Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass = {});

enum class ConstraintMode : std::uint8_t {
  kNone,      // only accounts
  kBoost,     // a fixed lambda
  kAdaptive,  // a lambda that follows the miss rate
  kHard,      // replaces missing experts
};

ConstraintMode constraint_mode(std::string_view name);  // none, boost, adaptive, hard; Error(kUsage)
std::string_view constraint_name(ConstraintMode mode);

struct ConstraintConfig {
  ConstraintMode mode = ConstraintMode::kNone;
  double limit = 0.05;              // m*, of the HBN miss rate: kAdaptive, kHard. [0, 1]
  double lambda = 0;                // of cache-prior: kBoost, kHard; kAdaptive begins with it. [0, 1]
  double eta = 0.05;                // kAdaptive: how fast lambda follows
  std::uint32_t top_j = 0;          // kHard: a token's best experts that are not replaced
  std::uint32_t exempt_steps = 10;  // decode steps at first that are free, and not accounted
  // What of an expert a use needs at least (least_parts), and what the rate is normalised by; the same of
  // families without slices.
  Parts low = Part::kMsb, high = Part::kMsb | Part::kLsb;

  void validate() const;  // Error(kUsage)
};

// One a run. Of a decode step: routers ask for each layer, then on_event follows, and at the end of the step
// end_step. Prompts are neither accounted nor constrained: nothing is called for them. Thread-compatible.
class MissConstraint {
 public:
  // `sizes` must outlive this; the experts of one layer are of one size. `guard`, which must outlive it too:
  // whom kHard asks how much score mass may be lost; null: nobody. Error(kUsage).
  MissConstraint(const ConstraintConfig& config, const ExpertSizes& sizes, const LossGuard* guard = nullptr);

  void begin_generation() { step_ = 0; }  // the next `exempt_steps` are free again
  // Bytes of LSBs that may be read for an event of these experts (SliceDemand::lsb_allowance), before it is
  // decided. Where a use needs its LSB, any.
  Bytes lsb_allowance(std::span<const ExpertId> experts, const ResidencyView& residency) const;
  void on_event(const EventOutcome& outcome);
  void end_step();

  // What cache-prior is to use; none: its own.
  std::optional<double> lambda() const;
  // By what is in memory of an expert.
  Standing standing(Parts parts) const;
  bool replaces() const { return config_.mode == ConstraintMode::kHard && accounts(); }
  // A router's: begins an event; then, for each of its tokens, replaces in its selection what the account
  // with the event's earlier tokens does not allow. Counts.
  // `mass`: the scores that a guard counts, by id.
  void begin_event() { pending_missed_ = pending_requested_ = pending_mass_ = 0, pending_tokens_ = 0; }
  void replace(std::uint32_t layer, std::span<const std::uint32_t> ranking, std::span<const double> score,
               std::span<const Standing> standing, std::span<const float> mass,
               std::vector<std::uint32_t>& selection);

  const ConstraintConfig& config() const { return config_; }
  const MissAccount& account() const { return account_; }
  std::uint64_t replaced() const { return replaced_; }
  std::uint64_t violations() const { return violations_; }

 private:
  Bytes bytes_to_read(Standing standing, const ExpertBytes& bytes) const;
  bool accounts() const { return step_ >= config_.exempt_steps; }

  ConstraintConfig config_;
  const ExpertSizes& sizes_;
  const LossGuard* guard_;
  MissAccount account_;
  double lambda_;
  // Of the running event's tokens so far.
  double pending_missed_ = 0, pending_requested_ = 0, pending_mass_ = 0;
  std::uint64_t pending_tokens_ = 0;
  std::uint64_t step_ = 0, replaced_ = 0, violations_ = 0;
};

}  // namespace sluice::experts
