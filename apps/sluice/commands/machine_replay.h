// `sluice simulate` on a modelled machine: what SliceMoE would have decided for recorded routing, and what
// that would have cost there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flags/slice_flags.h"

namespace sluice::app {

class Command;

struct MachineFlags {
  std::string machine, slices, shape, router;
  std::optional<std::uint64_t> prefill;
  bool asked() const { return !(machine.empty() && slices.empty() && shape.empty() && router.empty()); }
};
// `flags` must outlive `command`.
void add_machine_flags(Command& command, MachineFlags& flags);

struct MachineRequest {
  std::string trace, cache, preset, memories, decisions;  // as typed; may be empty, except trace and memories
  std::uint64_t seed = 0;
  bool json = false, quiet = false;
};
// Prints a table, or one JSON object.
void machine_replay(const MachineRequest& request, const MachineFlags& flags, const SliceFlags& slices);

}  // namespace sluice::app
