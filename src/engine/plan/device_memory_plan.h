// Divides the memory of a device, byte by byte, before anything is copied to it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace sluice::engine {

// What a run needs of a device, in bytes that blocks of it cost (device::Memory::cost), computed by the
// caller.
struct DeviceNeeds {
  Bytes context = 0;           // what the device takes for itself
  Bytes dense = 0, kv = 0;     // for a model whose dense part is computed there, else 0
  Bytes activations = 0;       // rows of a step on their way to, on, and back from the device
  Bytes expert = 0;            // one expert: a slot, and a staging buffer …
  Bytes staging_more = 0;      // … that takes more: for slices, where slots have no room for the LSB
  std::uint32_t prefetch = 0;  // experts that are copied ahead at a time; each needs a staging buffer
  std::uint32_t layers = 0;    // sparse layers, each of which has as many slots
  std::uint32_t layer_experts = 0;
};

// Two, so that one expert is copied while another one is computed.
inline constexpr std::uint32_t kLeastStaging = 2;

// The least memory with which a device can compute: it has no slot then.
Bytes least_device_memory(const DeviceNeeds& needs);

struct DeviceMemoryPlan {
  Bytes budget = 0;
  Bytes context = 0, dense = 0, kv = 0, activations = 0, staging = 0, experts = 0;
  std::uint32_t slots = 0;  // slots of a layer; at most its experts
  std::uint32_t staging_slots = kLeastStaging;
  Bytes expert = 0;   // a slot
  Bytes minimum = 0;  // that would do, without any slot
  Bytes slot = 0;     // one expert in every layer
  // Slots of a layer if the device had this many bytes and `most` experts in a layer.
  std::uint32_t slots_in(Bytes budget, std::uint32_t most) const;
};

// `slots` of a layer where the user says how many, else as many as `budget` has room for. Without a budget
// the slots say how large it is. Memory beyond all experts stays free. Error(kBudget) that names the least
// and its parts, if the budget does not hold them or these slots; Error(kUsage) for more slots than experts.
// REQUIRES: a budget, or slots.
DeviceMemoryPlan plan_device_memory(std::optional<Bytes> budget, std::optional<std::uint32_t> slots,
                                    const DeviceNeeds& needs);

}  // namespace sluice::engine
