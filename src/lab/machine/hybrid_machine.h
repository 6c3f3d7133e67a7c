// A host and a device as replays see them: what computing and copying an expert costs on a machine. The
// machine of DALI is not identifiable from its paper, so it comes in several profiles (SPEC §10, G7).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "experts/schedule/expert_costs.h"

namespace sluice::lab {

struct HybridMachine {
  std::string name;
  double expert_bits = 16;          // of a weight
  Bytes expert_bytes = 0;           // that a copy moves
  std::string source = {};          // where the costs are from
  experts::ExpertCosts costs = {};  // seconds; `fetch` is unused: the host holds all experts
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
// {"transfer_s", "row_s"}}: numbers >= 0, all needed; transfer_s > 0. Error(kInvalid) naming `path` and the
// field.
HybridMachine hybrid_machine_from_json(const Json& json, const std::string& path);
Json to_json(const HybridMachine& machine);

// The preset with that name, or the file. Error(kUsage) for a name that is neither.
HybridMachine find_hybrid_machine(const std::string& name_or_file);
// Whether it is such a name, or a file that has a link.
bool is_hybrid_machine(const std::string& name_or_file);

}  // namespace sluice::lab
