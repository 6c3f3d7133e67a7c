// The findings on SliceMoE before they become rows of a report.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/replay/synthetic_routing.h"
#include "reproduce/slicemoe/slicemoe_replays.h"
#include "reproduce/slicemoe/slicemoe_trained.h"
#include "reproduce/zipmoe/critical_shares.h"
#include "reproduce/zipmoe/hot_overlap.h"

namespace sluice::reproduce {

inline constexpr std::size_t kInitialStates = 4;  // pcw, empty, last-layer, random: experts::InitialSlices

// One cache size and pair of slices.
struct CacheCell {
  codec::SliceBits bits;
  Bytes memory = 0;
};
std::vector<CacheCell> cache_grid();  // the grid of SPEC §6.4: MAT84, MAT63, MAT42, each at every size

// Figures for the initial states of the cache, by experts::InitialSlices.
struct StartCell {
  CacheCell cell;
  std::array<SystemFigures, kInitialStates> whole;  // over all decode steps
  std::array<SystemFigures, kInitialStates> early;  // joules and seconds of the first steps of each answer
  std::array<std::vector<double>, kInitialStates> joules_by_step;  // mean over the answers
  // Energy of state `initial` divided by the energy of pcw.
  double energy_ratio(experts::InitialSlices initial) const;
  double time_ratio(experts::InitialSlices initial) const;
};

// A share of the cache that MSBs leave to LSBs (SliceLruRules::lsb_reserve).
struct ReserveCell {
  double reserve = 0;
  // exact: the model's own routing without a limit. limited: cache-prior within kMissRate.
  SystemFigures exact, limited;
};
inline constexpr std::array<double, 5> kReserves = {0, .05, .1, .2, .4};

// One way to route and to limit misses (SPEC §4.4, §4.5).
struct RouterCell {
  std::string router, constraint;
  double lambda = 0;  // at the end
  SystemFigures figures;
  std::uint64_t violations = 0;
};

// SliceMoE against Cache-Prior at high precision.
struct SystemCell {
  CacheCell cell;
  SystemFigures high, slices;             // under kMissRate
  SystemFigures free_high, free_slices;   // without a limit: the model's own routing
  std::vector<SystemFigures> high_sweep;  // under kLimits
  std::vector<SystemFigures> slices_sweep;
  EqualLoss equal_loss;  // the figures of `high`, where it loses as much as `slices`
};
inline constexpr std::array<double, 8> kLimits = {.01, .02, .05, .1, .15, .2, .3, 1};

// Results for one model's routing, recorded or synthetic.
struct RoutingResults {
  std::string source;  // "recorded routing of …"
  lab::RoutingFacts facts;
  std::uint64_t prompts = 0, prompt_tokens = 0, decode_tokens = 0;
  std::vector<HotOverlap> overlap;
  std::vector<CriticalShares> critical;
  std::vector<StartCell> starts;  // with the model's own routing, without a limit
};

struct SlicemoeResults {
  std::optional<RoutingResults> recorded;  // empty: no trace is available
  struct Synthetic {
    std::string model;  // "DeepSeek-V2-Lite"
    lab::SyntheticRouting settings;
    RoutingResults routing;
    std::vector<StartCell> limited_starts;  // within kMissRate, routed by cache-prior
    std::vector<SystemCell> systems;
    std::vector<ReserveCell> reserves;  // MAT84, 2.4 GB
    std::vector<RouterCell> routers;    // for the same cache
  };
  std::vector<Synthetic> synthetic;
  std::optional<TrainedResults> trained;  // empty: no model is available
};

}  // namespace sluice::reproduce
