// What a sparse layer is expected to take on the host alone, on a device alone, and on both, by measured
// costs: for plans, and for a device that nobody has told what to do. SPEC §3.2, §3.6 and §10 (G3).
#pragma once

#include <cstdint>
#include <span>

#include "experts/schedule/expert_costs.h"

namespace sluice::engine {

struct UnitShape {
  std::uint32_t experts = 0, top_k = 0;  // experts of a layer, experts of a token
  std::uint32_t slots = 0;               // slots of the device, for each layer
  std::uint32_t buffers = 0;             // HybridWork::buffers
};

// How many of a layer's experts are on the device when it begins.
enum class Resident : std::uint8_t {
  kShare,  // as many as an even use of all experts finds there
  kMost,   // as many as there are slots: no cache does better
};

// Figures of one layer. Seconds from the gate to the sum of the outputs.
struct UnitForecast {
  std::uint32_t tokens = 0;    // tokens of the step
  std::uint32_t active = 0;    // experts that tokens choose, if they choose evenly and independently …
  std::uint32_t resident = 0;  // … and those of them that are on the device
  double host = 0, device = 0, both = 0;
  std::uint32_t on_device = 0, copied = 0;  // experts that `both` computes there, and copies for that
  bool device_helps() const { return on_device > 0 && both < host; }
};

// `both` is what the placement ratio-prefix gives.
UnitForecast forecast_units(const experts::ExpertCosts& costs, const UnitShape& shape, std::uint32_t tokens,
                            Resident resident = Resident::kShare);

// Whether the device helps in no step of 1, 2, 4 … `most_tokens` tokens, whatever stays there: either the
// host alone is as fast, or it has computed the layer before the link has replaced one of the experts there.
bool device_helps_nowhere(const experts::ExpertCosts& costs, const UnitShape& shape,
                          std::uint32_t most_tokens);

}  // namespace sluice::engine
