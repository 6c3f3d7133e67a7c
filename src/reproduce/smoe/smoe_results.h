// What the stages of SMoE's reproduction found; rows, sections and pictures are made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/replay/synthetic_routing.h"
#include "reproduce/smoe/rank_figures.h"
#include "reproduce/smoe/smoe_replays.h"
#include "reproduce/smoe/smoe_trained.h"
#include "reproduce/smoe/top_score_accuracy.h"

namespace sluice::reproduce {

// One routing that replays ran over, at B = 1.
struct SmoeRoutingFound {
  const SmoeSetting* setting = nullptr;
  SmoeRoutingKind kind = SmoeRoutingKind::kFitted;
  lab::RoutingFacts facts;
  RankFigures ranks;
  TopScoreAccuracy accuracy;  // for the assumed predictions, with the setting's alpha
};

struct SmoeResults {
  std::vector<std::uint32_t> batches;
  SmoeShape shape;  // the shape of all replays but for the batch
  std::vector<SmoeRoutingFound> routings;
  SmoeTable places;   // all systems on the fitted routing, at every place
  SmoeTable overlap;  // both ladders with the second overlap, at kSmoeKnownPlace
  SmoeTable own;      // both ladders over routing of the trained model, at kSmoeKnownPlace
  std::optional<SmoeTrained> trained;

  // REQUIRES: it was used.
  const SmoeRoutingFound& routing(const SmoeSetting& setting, SmoeRoutingKind kind) const;
};

}  // namespace sluice::reproduce
