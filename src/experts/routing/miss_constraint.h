// Keeps the miss rate of a run below a limit, by preferring resident experts or by replacing missing experts.
// SliceMoE; SPEC §4.4. The routers of router_config.h ask it; the engine and the lab report events to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "experts/core/residency_view.h"
#include "experts/core/sequence_span.h"
#include "experts/routing/constraint_config.h"
#include "experts/routing/miss_account.h"

namespace sluice::experts {

class LossGuard;  // loss_guard.h

// How much of an expert is in memory when a token is routed.
enum class Standing : std::uint8_t {
  kMissing,    // must be read
  kPartial,    // its MSB is in memory, and high precision is asked for everywhere
  kResident,   // as much in memory as any use needs
  kRequested,  // an earlier token of the event has asked for it: costs nothing more
};

// The account against which a selection is measured, in bytes.
struct MissLimit {
  double rate = 0;                   // m*
  double missed = 0, requested = 0;  // so far
  // For one expert of the layer: bytes read of a missing one, bytes read of a partial one, and bytes that
  // normalise the rate.
  double low_bytes = 0, rest_bytes = 0, high_bytes = 0;
};

struct Replacement {
  std::uint32_t replaced = 0;  // missing experts replaced by resident ones
  bool violation = false;      // still over the limit, and an expert is missing
  double mass = 0;             // score mass of the replaced experts, where it is limited
};

// Score mass (by id) that a replacement may lose.
struct MassLimit {
  std::span<const float> mass = {};  // empty: no limit
  double allowed = 0;
};

// While the account with `selection` would be over the limit, replaces the missing expert of the lowest score
// (ties: id ascending) by the best expert that was not selected and costs nothing. A partial expert counts as
// missing; where no expert costs nothing, a partial expert may replace an absent one. The `top_j` best of the
// ranking are never replaced. `ranking`: experts that may be selected, best first (score descending, id
// ascending); `score` and `standing` by id. Where a loss is limited, the replaced experts have at most
// `allowed` of `mass` (by id) altogether.
Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass = {});
// The same for a caller that asks again and again: the vectors keep their memory.
struct ReplacementScratch {
  std::vector<std::uint8_t> stays;      // by id: selected, or not to be touched
  std::vector<std::uint32_t*> leaving;  // places in the selection
};
Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass,
                            ReplacementScratch& scratch);

// One per run: the rate is that of all sequences together. begin_step begins a step; in a step of decoded
// tokens, routers ask for each layer, and on_event follows each layer; end_step ends a step that did not
// fail. A step that has prompt tokens is neither accounted nor constrained. A step of decoded tokens is free
// if all of its sequences are in their first `exempt_steps` behind their prompts. Thread-compatible.
class MissConstraint {
 public:
  // `sizes` must outlive this; all experts of a layer have one size. `guard` must outlive this; kHard asks it
  // how much score mass may be lost; null: no limit. Error(kUsage).
  MissConstraint(const ConstraintConfig& config, const ExpertSizes& sizes, const LossGuard* guard = nullptr);

  // Also called when a step goes on after another step has run between its layers.
  void begin_step(std::span<const SequenceSpan> spans);
  // Bytes of LSBs that may be read for an event of these experts (SliceDemand::lsb_allowance), asked before
  // the event is decided. Unlimited where a use needs its LSB.
  Bytes lsb_allowance(std::span<const ExpertId> experts, const ResidencyView& residency) const;
  void on_event(const EventOutcome& outcome);
  void end_step();
  void end_sequence(SequenceId sequence) { steps_.erase(sequence); }

  // The lambda for cache-prior; empty: the router's own.
  std::optional<double> lambda() const;
  // The standing of an expert with these resident parts.
  Standing standing(Parts parts) const;
  bool replaces() const { return config_.mode == ConstraintMode::kHard && accounts(); }
  // For a router: begin_event() starts an event; then replace(), for each of its tokens, changes in the
  // token's selection what the account with the event's earlier tokens does not allow, and counts. `mass`:
  // the scores that a guard counts, by id.
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
  bool accounts() const { return accounts_; }

  ConstraintConfig config_;
  const ExpertSizes& sizes_;
  const LossGuard* guard_;
  MissAccount account_;
  double lambda_;
  // Totals of the running event's tokens so far.
  double pending_missed_ = 0, pending_requested_ = 0, pending_mass_ = 0;
  std::uint64_t pending_tokens_ = 0;
  std::unordered_map<SequenceId, std::uint64_t> steps_;  // decode steps behind the sequence's prompt
  std::vector<SequenceId> decoding_;                     // sequences with decoded tokens in the running step
  bool accounts_ = false;                                // the running step
  std::uint64_t replaced_ = 0, violations_ = 0;
  ReplacementScratch scratch_;
};

}  // namespace sluice::experts
