// The recorded routing that the rows of a replay with a host and a device are replayed over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "commands/hybrid/hybrid_rows.h"
#include "experts/prefetch/prefetch.h"
#include "lab/replay/predicted_steps.h"

namespace sluice::app {

// The recorded routing with what each row's prefetch needs, read and batched as rows ask for it.
class RoutingOfRows {
 public:
  // Reads what prefetches must know of other text. `request` must outlive this. Error(kInvalid) for
  // routing of another model, and errors of its file.
  RoutingOfRows(const HybridRequest& request, const trace::TraceHeader& header,
                const std::vector<HybridRow>& rows);

  const experts::ExpertTransitions* transitions() const { return transitions_ ? &*transitions_ : nullptr; }

  // Valid until the next call.
  const lab::RoutedSteps& of(const HybridRow& row);
  // As recorded. REQUIRES: of() was called.
  const lab::RoutedSteps& recorded() const { return steps_.begin()->second; }

 private:
  void check(const lab::RoutedSteps& steps) const;

  const HybridRequest& request_;
  const std::optional<std::uint32_t> batch_;  // the largest of all rows; empty: all are as recorded
  std::optional<experts::ExpertTransitions> transitions_;
  std::map<experts::PredictorKind, lab::RoutedSteps> steps_;
  std::pair<experts::PredictorKind, std::uint32_t> batched_of_{};  // no batch is 0
  lab::RoutedSteps batched_;
};

}  // namespace sluice::app
