// The state of one expert in ExpertStore. Only for ExpertStore's own files.
#pragma once

#include <cstdint>
#include <memory>

#include "device/host_buffer.h"
#include "fetch/expert_store.h"

namespace sluice::fetch {

// The parts that together hold all of an expert that is stored as planes.
inline constexpr experts::Parts kPacked = experts::Part::kSm | experts::Part::kExp;

struct ExpertStore::Expert {
  experts::ExpertId id;
  ExpertLayout layout;
  std::uint32_t hidden = 0, width = 0;
  // Buffers exist for parts that are held and, while the expert is on its way, for parts that are being made.
  device::HostBuffer full, base, rest;
  experts::Parts held;  // complete and resident
  // For slices: the parts that the running event computes with, or that a prefetch is for.
  experts::Parts view;
  experts::Parts target;          // the parts that stay once the work under way is done
  experts::Parts settled;         // the parts that settled_ counts for it
  std::uint32_t tokens = 0;       // in the running event
  std::unique_ptr<FetchJob> job;  // for the running event, or a prefetch
  bool in_event = false;          // used by the running event; a job without it is a prefetch
  // Its job makes no words: the view is `packed`, or made of slices.
  bool packed = false;
  bool withdrawn = false;  // its job is a prefetch that is no longer wanted
};

}  // namespace sluice::fetch
