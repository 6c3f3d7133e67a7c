// The findings on ZipMoE before they become rows of a report.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "lab/compare.h"
#include "reproduce/zipmoe/exponents.h"
#include "reproduce/zipmoe/makespan_ratio.h"
#include "reproduce/zipmoe/zipmoe_replay.h"

namespace sluice::reproduce {

struct ZipmoeResults {
  ExponentFacts exponents;
  std::vector<std::pair<std::string, MakespanRatio>> ratios;  // by scheduler
  std::vector<Bytes> budgets;                                 // ascending
  std::vector<lab::Comparison> sweep;                         // parallel to budgets
  std::vector<lab::Comparison> batches, lengths;              // parallel to batches and lengths of ZipmoeRuns
  std::vector<Bytes> batch_budgets;                           // parallel to batches
  lab::Comparison ladder;
  std::optional<ZipmoeReplay> replay;  // empty: there are no costs to replay with
  Bytes middle() const { return budgets[budgets.size() / 2]; }
};

}  // namespace sluice::reproduce
