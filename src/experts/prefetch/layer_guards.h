// Stops the prefetches to a device that cost more than they save, layer by layer, by times of the modelled
// clock. Ours; SPEC §10 (G8).
#pragma once

#include <cstdint>
#include <vector>

#include "experts/prefetch/prefetch_guard.h"

namespace sluice::experts {

// What a layer names is judged when the next layer is decided: a copy that is used then saves what it need
// not be copied any more; one that is not has cost what it was on the link, and predicting costs the device's
// time. Allocates nothing once it has seen all layers. Thread-compatible.
class LayerGuards {
 public:
  // At every event of a layer that could name some: whether it may.
  bool allows(std::uint32_t layer) {
    Ledger& ledger = of(layer);
    const bool allowed = ledger.guard.allows(ledger.saved, ledger.cost);
    ledger.saved = ledger.cost = 0;
    return allowed;
  }
  // What has become known of what the layer named.
  void add(std::uint32_t layer, double saved, double cost) {
    Ledger& ledger = of(layer);
    ledger.saved += saved;
    ledger.cost += cost;
  }

 private:
  // A layer has one event a step, so it is judged sooner than a disk that all layers share.
  struct Ledger {
    PrefetchGuard guard{GuardPace{.memory = 32, .trial = 16, .pause = 256}};
    double saved = 0, cost = 0;  // since its last event
  };
  Ledger& of(std::uint32_t layer) {
    if (layer >= ledgers_.size()) ledgers_.resize(layer + 1);
    return ledgers_[layer];
  }

  std::vector<Ledger> ledgers_;
};

}  // namespace sluice::experts
