// What DALI compares, as replays through a host and a device: systems, the work they are given, and figures.
// SPEC §3.7, §6.3.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experts/named_preset.h"
#include "experts/prefetch/expert_transitions.h"
#include "lab/replay/hybrid_replay.h"
#include "reproduce/dali/dali_batches.h"
#include "reproduce/dali/dali_models.h"

namespace sluice::reproduce {

// How a prefetch's predictions come about, where routing has none (lab/replay/assumed_prediction.h).
enum class DaliGuess : std::uint8_t { kNone, kRaw, kResidual };

DaliGuess guess_of(const experts::PrefetchPolicy& prefetch);

struct DaliSystem {
  std::string name;
  lab::HybridSettings settings;  // without costs
  DaliGuess guess = DaliGuess::kNone;
};

// The preset for a model with this many slots a layer, with the model's window and prefetch.
DaliSystem dali_system(const DaliModel& model, const experts::NamedPreset& preset, std::uint32_t slots);
// Residents that never change, a seeded random choice: assignment alone is compared.
DaliSystem static_system(const DaliModel& model, experts::Named<experts::PlacementPolicy> placement,
                         std::uint32_t slots);

// Tokens of a model: some that batches are cut of, and others that tell which experts are popular, and which
// follow which.
struct DaliTokens {
  explicit DaliTokens(const WeightedTokens& all);  // a third of them, from the front, tells
  WeightedTokens batches;
  std::vector<std::vector<double>> popularity;
  experts::ExpertTransitions transitions;
};

// One routing for all systems of a model and batch. `tokens` must outlive it. Thread-compatible.
class DaliWork {
 public:
  DaliWork(const DaliModel& model, const DaliTokens& tokens, const BatchShape& shape, std::uint64_t seed);

  const DaliModel& model() const { return model_; }
  const BatchShape& shape() const { return shape_; }
  // With the predictions of that kind.
  const lab::RoutedSteps& steps(DaliGuess guess);
  lab::HybridResult run(const DaliSystem& system, const DaliMachine& machine,
                        const std::function<bool()>& stop = {}, const lab::HybridWatch& watch = {});

 private:
  const DaliModel& model_;
  const DaliTokens& tokens_;
  const BatchShape shape_;
  const std::uint64_t seed_;
  lab::RoutedSteps plain_;
  std::map<DaliGuess, lab::RoutedSteps> guessed_;
};

// A system on a machine with a batch.
struct DaliCell {
  std::string model, machine, system;
  std::uint32_t batch = 0, slots = 0;
  lab::HybridResult result;

  double tpot_s() const;        // a decode step
  double moe_s() const;         // its part from each layer's gate to the sum of its outputs
  double prefill_s() const;     // the prompts
  double demand_share() const;  // share of the decode time in which the link carries what a layer waits for
  double link_share() const;    // share of the decode time in which the link is busy
  double imbalance_s() const;   // in a decode step: |host - device|, summed over its layers
};
Json to_json(const DaliCell& cell);

class DaliTable {
 public:
  void add(DaliCell cell) { cells_.push_back(std::move(cell)); }
  const std::vector<DaliCell>& cells() const { return cells_; }
  // REQUIRES: it is there.
  const DaliCell& find(const std::string& model, const std::string& machine, const std::string& system,
                       std::uint32_t batch, std::uint32_t slots) const;
  // In order of appearance, of cells of that model and machine.
  std::vector<std::uint32_t> batches(const std::string& model) const;
  std::vector<std::string> machines(const std::string& model) const;
  std::vector<std::string> models() const;
  std::vector<std::uint32_t> slots(const std::string& model) const;
  bool has(const std::string& model) const;

 private:
  std::vector<DaliCell> cells_;
};

// Geometric mean over the batches of `of(other) / of(system)`; `best` and `worst` of them.
struct DaliRatio {
  double mean = 0, least = 0, most = 0;
};
DaliRatio ratio_of(const DaliTable& table, const std::string& model, const std::string& machine,
                   const std::string& other, const std::string& system, std::uint32_t slots,
                   double (DaliCell::*of)() const);

}  // namespace sluice::reproduce
