// Where every byte of the budget goes, decided before anything is loaded.
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "device/accountant.h"

namespace sluice::engine {

// What the model and the request need, in bytes; measured or computed by the caller.
struct MemoryNeeds {
  Bytes process = 0, dense = 0, kv = 0, tables = 0;
  Bytes load_staging = 0;        // most that loading the dense weights stages at once
  Bytes least_staging = 0;       // one expert on its way
  Bytes staging_per_expert = 0;  // each further one
  Bytes expert_bytes = 0;        // one resident expert
  std::uint64_t experts = 0;     // routed experts in all
  std::uint32_t top_k = 0;
  std::size_t sequences = 1;   // that are decoded together: a step has a token of each
  std::size_t most_chunk = 0;  // --chunk, or less where prompt and context are shorter
  bool same_chunk = false;     // at every start: planned beside a process of a round size, not of this one's
  Bytes (*activations)(const void* self, std::size_t chunk_tokens) = nullptr;
  const void* self = nullptr;
};

struct MemoryPlan {
  Bytes budget = 0;
  Bytes process = 0, dense = 0, kv = 0, tables = 0, activations = 0, staging = 0, experts = 0;
  std::size_t chunk = 0;  // tokens of one prefill step
  Bytes minimum = 0;      // the least budget that would do for this request, now
  Bytes stated = 0;       // and at any start of the program: kStartMargin more, in whole MiB
};

// By how much the process may be larger at the next start: what is resident depends on which pages the system
// maps around those that are touched.
inline constexpr Bytes kStartMargin = kMiB / 2;

// Error(kBudget) with the budget to give and what it is made of if `budget` is below the minimum. Staging
// grows to a few experts in flight and the chunk to --chunk as long as they take a small share; all the rest
// goes to resident experts.
MemoryPlan plan_memory(Bytes budget, const MemoryNeeds& needs);

// The default budget: what the machine or its cgroup leaves free, less max(512 MiB, 5 %).
Bytes default_budget();
// The budget that was asked for. Error(kBudget) if the machine or the control group does not have as much at
// all.
Bytes checked_budget(Bytes budget);

// What the process itself takes, as it was right after start (the first call decides; the program calls it
// first thing in main): memory of its own, page tables included, and the heap in use then.
struct ProcessBaseline {
  Bytes own = 0, heap = 0;
};
const ProcessBaseline& process_baseline();

// The most that this process ever had in memory, as the system counts it: resident pages, those of files
// included, and page tables. Where one engine runs in a process, no more than its budget.
Bytes measured_peak();

// The account `process` of a run that takes `bytes` beside: the baseline, code and constants of the program
// and its libraries that are resident now or will be, and the page tables of those bytes.
Bytes process_bytes(Bytes bytes);

}  // namespace sluice::engine
