// What an engine knows of drafts: whether they are on, what its steps take with them and without, and how
// many have come true. docs/drafts.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "engine/draft/draft_counts.h"
#include "engine/draft/draft_guard.h"
#include "engine/draft/fresh_experts.h"
#include "engine/plan/draft_kind.h"
#include "engine/session/sequence.h"
#include "engine/watch/event_account.h"
#include "engine/watch/statistics.h"

namespace sluice::engine {

// Thread-compatible, with its engine. Its memory is fixed by the model: a few KiB.
class Drafting {
 public:
  // `decoded`: Statistics::decode of its engine, which it follows and corrects.
  Drafting(DraftKind kind, std::uint32_t sparse_layers, std::uint32_t top_k, ExpertStatistics& decoded)
      : kind_(kind), fresh_(sparse_layers, top_k), decoded_(decoded) {}
  // Why there can be none (why_no_drafts()); empty: there can.
  void set_lack(std::string lack) { lack_ = std::move(lack); }

  bool on() const { return kind_ != DraftKind::kNone && lack_.empty(); }
  // Drafts were asked for, and this is why there are none: "with the router smoe"; else empty.
  std::string why_off() const { return kind_ == DraftKind::kNone ? "" : lack_; }

  // Around a step that only decodes, whose account is account(). A step that has failed is not ended.
  EventAccount& account() { return fresh_; }
  void begin_step();
  void end_step(const DraftShape& shape);
  DraftGuard& guard() { return guard_; }

  // A step has computed `drafted` tokens of an answer before they were drawn, the sequence's last ones. The
  // first `accepted` of them came true; the others leave the sequence. REQUIRES: it is in no pass.
  void settle(Sequence& sequence, std::size_t drafted, std::size_t accepted);
  const DraftCounts& counts() const { return counts_; }

 private:
  const DraftKind kind_;
  std::string lack_;
  FreshExperts fresh_;
  ExpertStatistics& decoded_;
  DraftGuard guard_;
  ExpertStatistics before_;
  DraftCounts counts_;
};

}  // namespace sluice::engine
