// What SMoE compares, as replays through a host and a device: systems, the work they are given, and figures.
// SPEC §2.7, §6.2 and §10 (G2, G16).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "experts/named_policy.h"
#include "experts/named_preset.h"
#include "lab/replay/hybrid_replay.h"
#include "reproduce/smoe/smoe_routing.h"
#include "reproduce/smoe/smoe_settings.h"

namespace sluice::reproduce {

// A preset, or one with another placement or admission.
struct SmoeSystem {
  std::string name;
  experts::NamedPreset preset;
  // Replaces the preset's placement in decode steps; for prompts experts are still loaded, as the paper does.
  experts::Named<experts::PlacementPolicy> placement = {};
  // Replaces the preset's, which is the paper's (SPEC §10, G5).
  std::optional<experts::Admit> admit = {};
  bool is_llamacpp = false;  // no baseline where SmoeSetting::has_llamacpp is false
};
// The rungs of figure 16, in order: what is missing is loaded; and, but for the last one, which says itself,
// the host computes it (SPEC §10, G16).
const std::vector<SmoeSystem>& smoe_ladder();
const std::vector<SmoeSystem>& smoe_host_ladder();
// Those rungs of the latter whose caches can take in what the host has computed, and do.
const std::vector<SmoeSystem>& smoe_idle_ladder();
// What the paper compares with.
const std::vector<SmoeSystem>& smoe_baselines();
// The last rung by the printed rule of Alg. 2.
const SmoeSystem& smoe_literal();

struct SmoeShape {
  std::uint32_t batch = 1, prompt = 64, output = 64;
  std::uint32_t sequences = 12;  // one after the other, `batch` of them at a time
};
// Routing of a model's shape with predictions of each next layer (kPredictionError).
lab::RoutedSteps smoe_steps(const SmoeSetting& setting, SmoeRoutingKind kind, const SmoeShape& shape,
                            std::uint64_t seed);

// Experts of decode steps by what the model's own scores make of them, and those that were neither in a
// slot of the device nor copied there in time: S-F15.
struct NeededExperts {
  std::uint64_t top = 0, top_missing = 0;  // top-score for some token of the step
  std::uint64_t low = 0, low_missing = 0;  // all others
  double top_share() const { return share(top_missing, top); }
  double low_share() const { return share(low_missing, low); }

 private:
  static double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

// A system at a place with a batch.
struct SmoeCell {
  std::string place, system;
  std::uint32_t batch = 0;
  std::uint64_t prompts = 0;
  lab::HybridResult result;
  NeededExperts needed;

  double tpot_s() const;      // a decode step
  double ttft_s() const;      // one prompt
  double hit() const;         // on the device when their layer starts to compute, of all that it uses (G2)
  double own_hit() const;     // in a slot then, of those that the exact router would use
  double moved() const;       // share of all scores that experts had which others replaced
  double host_s() const;      // in a step: the host computes
  double load_s() const;      // in a step: the link carries what a layer waits for …
  double prefetch_s() const;  // … and what it will need
};
Json to_json(const SmoeCell& cell);

class SmoeTable {
 public:
  void add(SmoeCell cell) { cells_.push_back(std::move(cell)); }
  const std::vector<SmoeCell>& cells() const { return cells_; }
  // REQUIRES: it is there.
  const SmoeCell& find(const std::string& place, const std::string& system, std::uint32_t batch) const;
  bool has(const std::string& place, const std::string& system) const;

 private:
  std::vector<SmoeCell> cells_;
};

// Replays steps of a setting at one of its places.
SmoeCell run_smoe(const lab::RoutedSteps& steps, const SmoePlace& place, const SmoeSystem& system,
                  std::uint64_t seed, const std::function<bool()>& stop = {});

}  // namespace sluice::reproduce
