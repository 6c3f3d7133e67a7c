// A host and a device as replays see them: what computing and copying an expert costs on a machine. The
// machines of DALI and SMoE are not identifiable from their papers, so they come in several profiles (SPEC
// §10, G1 and G7).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/profile.h"
#include "experts/schedule/expert_costs.h"
#include "experts/schedule/hybrid_timeline.h"

namespace sluice::lab {

struct HybridMachine {
  std::string name;
  double expert_bits = 16;          // bits of a weight; 0: in slices, unknown
  Bytes expert_bytes = 0;           // that a copy moves
  std::string source = {};          // where the costs are from
  experts::ExpertCosts costs = {};  // seconds; `fetch` is unused: reads of the host are not timed
  // Copies that may be on the device before they are computed (HybridWork::buffers).
  std::uint32_t buffers = experts::kAnyBuffers;
  // The parts of all experts that its device's memory held in its paper, each a row of a replay that names no
  // other size; empty: unknown.
  std::vector<double> slot_shares = {};
  bool packed = false;         // measured with copies of packed planes, which the host then keeps, too
  experts::Parts slices = {};  // measured with copies of these; empty: of whole experts
};

// Those of DALI are of DeepSeek-V2-Lite's expert, except the two whose names say Mixtral:
//   dali-3090              words over the nominal link; times from datasheets
//   dali-3090-4.5          4.5 bits a weight, the same otherwise
//   dali-3090-fit          fitted to the paper's Table 4
//   dali-3090-mixtral-4    fitted to the same table for Mixtral, with a copy of 4 ms …
//   dali-3090-mixtral-8    … and of 8 ms, which fits as well
// Those of SMoE, each with the expert of its model:
//   smoe-s1-25, smoe-s1-75 deepseek-moe-16b, a 3080 Ti; a host that reads 25 or 75 GB/s of weights
//   smoe-s2-25, smoe-s2-75 XVERSE-MoE-A4.2B, a 4060 Ti; likewise
//   smoe-s3                Qwen2-57B-A14B, an A6000; the host takes a third of a copy for a token
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

// The machines that a name stands for: smoe-s1 and smoe-s2 for both ends of what their host may read, any
// other for one. Errors as find_hybrid_machine.
std::vector<HybridMachine> find_hybrid_band(const std::string& name_or_file);
// All names that find_hybrid_band() knows, as help lists them: a band by its one name.
std::vector<std::string> hybrid_machine_names();

// Its link carries at most this many bytes a second: copies take as long as that says, and rows longer by the
// same factor. Does nothing to a slower link. REQUIRES: bytes_per_s > 0.
void limit_link(double bytes_per_s, HybridMachine& machine);

// Sets what a copy of either slice of an expert takes, where the machine was not measured with slices: their
// shares, by bytes, of the time of a copy, which then brings both. REQUIRES: `bytes` of experts in slices.
void divide_into_slices(const experts::ExpertBytes& bytes, HybridMachine& machine);

// The preset with that name, or the file: a machine, or a profile of version 2 with a device. Error(kUsage)
// for a name that is neither; Error(kInvalid) for a profile without a device.
HybridMachine find_hybrid_machine(const std::string& name_or_file);
// Whether it is such a name, or that of a band, or such a file: one with a link, or a profile.
bool is_hybrid_machine(const std::string& name_or_file);

}  // namespace sluice::lab
