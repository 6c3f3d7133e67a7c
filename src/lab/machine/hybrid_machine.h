// A host and a device as replays see them: what computing and copying an expert costs on a machine. The
// machine of DALI is not identifiable from its paper, so it comes in several profiles (SPEC §10, G7).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "engine/plan/profile.h"
#include "experts/schedule/expert_costs.h"
#include "experts/schedule/hybrid_timeline.h"

namespace sluice::lab {

struct HybridMachine {
  std::string name;
  double expert_bits = 16;          // of a weight
  Bytes expert_bytes = 0;           // that a copy moves
  std::string source = {};          // where the costs are from
  experts::ExpertCosts costs = {};  // seconds; `fetch` is unused: reads of the host are not timed
  // Copies that may be on the device before they are computed (HybridWork::buffers).
  std::uint32_t buffers = experts::kAnyBuffers;
  bool packed = false;  // measured with copies of packed planes, which the host then keeps, too
};

// All are of DeepSeek-V2-Lite's expert, except the two whose names say Mixtral:
//   dali-3090              words over the nominal link; times from datasheets
//   dali-3090-4.5          4.5 bits a weight, the same otherwise
//   dali-3090-fit          fitted to the paper's Table 4
//   dali-3090-mixtral-4    fitted to the same table for Mixtral, with a copy of 4 ms …
//   dali-3090-mixtral-8    … and of 8 ms, which fits as well
std::span<const HybridMachine> hybrid_machines();

// {"name", "expert_bits", "expert_bytes", "cpu": {"fixed_s", "per_token_s"}, "device": {"fixed_s",
// "per_token_s", "shared_s", "gate_s", "launch_s", "sync_s", "policy_s", "predict_s", "switch_s"}, "link":
// {"transfer_s", "row_s", "duplex"}}: numbers >= 0, all needed; transfer_s > 0; duplex "full", also where it
// is missing, or "half". Error(kInvalid) naming `path` and the field.
HybridMachine hybrid_machine_from_json(const Json& json, const std::string& path);
// As such a file has it; of a measured machine with "measured_s" in place of lines, which is not read.
Json to_json(const HybridMachine& machine);

// The machine that a profile was measured on, with its device: the costs by which a run with that profile
// decides, and an engine's buffers. REQUIRES: profile.device.
HybridMachine hybrid_machine_of(const engine::Profile& profile, const std::string& path);

// Its link carries at most so many bytes a second: copies take as long as that says, and rows longer by the
// same factor. Does nothing to a slower link. REQUIRES: bytes_per_s > 0.
void limit_link(double bytes_per_s, HybridMachine& machine);

// The preset with that name, or the file: a machine, or a profile of version 2 with a device. Error(kUsage)
// for a name that is neither; Error(kInvalid) for a profile without a device.
HybridMachine find_hybrid_machine(const std::string& name_or_file);
// Whether it is such a name, or such a file: one with a link, or a profile.
bool is_hybrid_machine(const std::string& name_or_file);

}  // namespace sluice::lab
