// What ExpertStore knows of one expert. Only for its own files.
#pragma once

#include <cstdint>
#include <memory>

#include "device/host_buffer.h"
#include "fetch/expert_store.h"

namespace sluice::fetch {

// The parts that hold all of an expert that is stored as planes.
inline constexpr experts::Parts kPacked = experts::Part::kSm | experts::Part::kExp;

struct ExpertStore::Expert {
  experts::ExpertId id;
  ExpertLayout layout;
  std::uint32_t hidden = 0, width = 0;
  // Buffers exist for parts that are held, and while the expert is on its way for those that are being made.
  device::HostBuffer full, base, rest;
  experts::Parts held;            // complete and resident
  experts::Parts view;            // of slices: what the running event computes with, or a prefetch is for
  experts::Parts target;          // what stays once what is under way is done
  experts::Parts settled;         // what settled_ counts for it
  std::uint32_t tokens = 0;       // of the running event
  std::unique_ptr<FetchJob> job;  // of the running event, or a prefetch
  bool in_event = false;          // used by the running event; a job without it is a prefetch
  bool packed = false;            // its job makes no words: the view is `packed`, or of slices
  bool withdrawn = false;         // its job is a prefetch that nobody wants any more
};

}  // namespace sluice::fetch
