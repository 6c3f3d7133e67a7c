// A preset for a host and a device, as replays of published results take it.
#pragma once

#include <cstdint>

#include "experts/named_preset.h"
#include "lab/replay/hybrid_replay.h"

namespace sluice::reproduce {

// Its policies, without costs and seed, with this many slots a layer; `prefetch_size` where the preset does
// not say how many experts it copies ahead. REQUIRES: a preset for a device. Error(kUsage) for one that
// cannot run.
lab::HybridSettings settings_of(const experts::NamedPreset& preset, std::uint32_t slots,
                                std::uint32_t prefetch_size);

}  // namespace sluice::reproduce
