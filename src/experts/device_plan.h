// One event on a device, decided: which experts are computed there, how each of them gets there, and what the
// cache of the device takes in and gives up. The engine carries it out, the lab clocks it. SPEC §3.2, §3.5,
// §3.6.
//
// To carry a plan out, in this order:
//  1. copies for `uses` whose `from` is kLink are queued in the order of the list, before everything that is
//     queued at a lower class; a use with `remaining` > 0 from a slot or prefetch is a copy under way,
//     and goes on as one of these;
//  2. the experts of `uses` are computed in the order of the list, each once its bytes are there;
//  3. `evicted` leave their slots. An expert that is used leaves once computed; a slot may be overwritten
//     then, and not before;
//  4. used experts that `stays` says are in a slot from now on: a copy may be made into the slot at once;
//  5. `updates` are copied into slots at the lowest class. They count as resident from the layer's next event
//     on, which finds on the modelled clock what is left of the copy;
//  6. prefetched experts of the layer that are neither used nor updated are dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/core/ids.h"

namespace sluice::experts {

// Where the bytes of an expert are, as decided: the copy may not have ended.
enum class DeviceBytes : std::uint8_t {
  kSlot,      // in a slot of the device's cache
  kPrefetch,  // in a staging buffer, where a prefetch for this layer puts them
  kLink,      // not on the device: they come from the host
};

// An expert that the device computes.
struct DeviceUse {
  ExpertId id;
  std::uint32_t tokens = 0;
  DeviceBytes from = DeviceBytes::kLink;
  bool stays = false;    // in a slot after the event; false: it is dropped once it is computed
  double remaining = 0;  // left of its copy, on the modelled clock when the event is decided; 0: it is there
  // Slices alone: what it is computed with. From the link come those that the slot lacks.
  Parts view = {};
};

// An expert that the cache brings in though the device does not compute it in this event.
struct DeviceUpdate {
  ExpertId id;
  DeviceBytes from = DeviceBytes::kLink;  // or kPrefetch
  double remaining = 0;                   // as above
  Parts parts = {};                       // slices alone: those that it brings
};

struct DevicePlan {
  // In the order of computing and, where `remaining` > 0, of the link: first those that are there, ascending;
  // then those under way, the nearest first; then the others, the longest computation first, because what is
  // computed behind the last copy is waited for.
  std::vector<DeviceUse> uses;
  std::vector<Eviction> evicted;      // in order of decision
  std::vector<DeviceUpdate> updates;  // in order of decision

  void clear() {
    uses.clear();
    evicted.clear();
    updates.clear();
  }
};

}  // namespace sluice::experts
