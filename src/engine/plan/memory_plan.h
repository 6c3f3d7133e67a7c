// Divides the budget, byte by byte, before anything is loaded.
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "device/accountant.h"
#include "engine/plan/server_defaults.h"

namespace sluice::engine {

// The needs of model and request in bytes, measured or computed by the caller.
struct MemoryNeeds {
  Bytes process = 0, dense = 0, kv = 0, tables = 0;
  Bytes serve = 0;               // what a server takes, also while the model loads
  Bytes load_staging = 0;        // the most that loading the dense weights stages at once
  Bytes least_staging = 0;       // one expert on its way
  Bytes staging_per_expert = 0;  // each further one
  Bytes expert_bytes = 0;        // one resident expert
  std::uint64_t experts = 0;     // routed experts in all
  std::uint32_t top_k = 0;
  // With `serve`: what may be asked less of, and bytes of `kv` for each of its positions (0: none are here).
  ServerSizes server = {};
  Bytes kv_per_token = 0;
  std::size_t sequences = 1;   // that are decoded together: a step has a token of each
  std::size_t most_chunk = 0;  // EngineOptions::chunk, or less where prompt and context are shorter
  // The chunk must be equal at every start: plans beside a process of rounded size, not of this one's.
  bool same_chunk = false;
  Bytes (*activations)(const void* self, std::size_t chunk_tokens) = nullptr;
  const void* self = nullptr;
};

struct MemoryPlan {
  Bytes budget = 0;
  Bytes process = 0, dense = 0, kv = 0, tables = 0, serve = 0, activations = 0, staging = 0, experts = 0;
  std::size_t chunk = 0;  // tokens of one prefill step
  Bytes minimum = 0;      // the smallest budget that suffices for this request now
  Bytes stated = 0;       // the budget that suffices at any start: kStartMargin more, in whole MiB
};

// Fewer tokens of a prompt in one step save no memory worth having.
std::size_t least_chunk(std::size_t sequences);

// How much larger the process may be at the next start: its resident size depends on the pages that the
// system maps around those that are touched.
inline constexpr Bytes kStartMargin = kMiB / 2;

// Error(kBudget) with the required budget and its parts if `budget` is below the minimum. Staging grows to a
// few experts in flight, and the chunk to the one asked for, as long as they take a small share; everything
// else goes to resident experts.
MemoryPlan plan_memory(Bytes budget, const MemoryNeeds& needs);

// The default budget: what the machine or its cgroup leaves free, less max(512 MiB, 5 %).
Bytes default_budget();
// Checks a budget that the user asked for. Error(kBudget) if machine or control group do not have so much
// memory at all.
Bytes checked_budget(Bytes budget);

// The memory of the process itself right after start (the first call decides; the program calls it first
// thing in main): private memory, including page tables, and the heap in use.
struct ProcessBaseline {
  Bytes own = 0, heap = 0;
};
const ProcessBaseline& process_baseline();

// The largest memory that this process has had, as the system counts it: resident pages, those of files
// included, and page tables. Where one engine runs in a process, no more than its budget.
Bytes measured_peak();

// The account `process` of a run that takes `bytes` besides: the baseline, code and constants of program and
// libraries that are or will be resident, and the page tables of those bytes.
Bytes process_bytes(Bytes bytes);

}  // namespace sluice::engine
