#include "engine/plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"

namespace sluice::engine {
namespace {

constexpr Bytes kMargin = 512 * kMiB;
constexpr Bytes kUsualProcess = 32 * kMiB;
// Allowance for library code that is first used after planning, and for the codecs' contexts.
constexpr Bytes kLateCode = 640 * kKiB;

Bytes activations_of(const MemoryNeeds& needs, std::size_t chunk) {
  return needs.activations(needs.self, chunk);
}

// Largest chunk that fits in `room` (at least `least`). A chunk below the requested one is rounded down to
// three significant bits, so that it hardly ever changes between starts, as the process does.
std::size_t largest_chunk(const MemoryNeeds& needs, std::size_t least, Bytes room) {
  if (activations_of(needs, needs.most_chunk) <= room) return std::max(least, needs.most_chunk);
  std::size_t fits = least, beyond = std::max(least, needs.most_chunk) + 1;
  while (beyond - fits > 1) {
    const std::size_t middle = fits + (beyond - fits) / 2;
    (activations_of(needs, middle) <= room ? fits : beyond) = middle;
  }
  return std::max(least, fits & ~((std::bit_ceil(fits + 1) >> 3) - 1));
}

// At least the size of the process and its tables, and the same at every start, unless that size is within
// the difference between starts of two thirds of a power of two.
Bytes round_process(const MemoryNeeds& needs) {
  const Bytes own = needs.process + needs.tables;
  return std::max(kUsualProcess, std::bit_ceil(own + own / 2));
}

// `loads`: loading takes most, when there are neither keys and values nor activations.
Error too_small(Bytes budget, const MemoryPlan& plan, const MemoryNeeds& needs, Bytes activations,
                bool loads) {
  const std::string serve = needs.serve == 0 ? "" : fmt::format("serve {}, ", format_bytes(needs.serve));
  std::string less;
  if (loads)
    less = "; the largest dense matrix takes that while it is loaded";
  else if (needs.serve == 0)
    less = ", or ask for fewer tokens, or for fewer sequences at once";
  else if (const auto smaller = smaller_server(needs.server, needs.kv_per_token, plan.stated - budget))
    less = ", " + text_of(*smaller);
  return Error(ErrorKind::kBudget, "the memory budget is too small for this model and request")
      .in(Setting::kMemory)
      .expected(fmt::format(
          "at least {}MiB (process {}, dense {}, kv {}, tables {}, {}activations {}, staging {}, "
          "and {} to spare, as the process takes more at some starts; in whole MiB)",
          plan.stated / kMiB, format_bytes(needs.process), format_bytes(needs.dense),
          format_bytes(loads ? 0 : needs.kv), format_bytes(needs.tables), serve, format_bytes(activations),
          format_bytes(loads ? needs.load_staging : needs.least_staging),
          format_bytes(plan.stated - plan.minimum)))
      .found(format_bytes(budget))
      .fix(fmt::format("give {} {}MiB or more", mark(Setting::kMemory), plan.stated / kMiB) + less);
}

}  // namespace

std::size_t least_chunk(std::size_t sequences) { return std::max<std::size_t>(16, sequences); }

MemoryPlan plan_memory(Bytes budget, const MemoryNeeds& needs) {
  MemoryPlan plan;
  plan.budget = budget;
  plan.process = needs.process;
  plan.dense = needs.dense;
  plan.kv = needs.kv;
  plan.tables = needs.tables;
  plan.serve = needs.serve;
  const Bytes fixed = needs.process + needs.dense + needs.kv + needs.tables + needs.serve;
  const std::size_t least_chunk = std::min(engine::least_chunk(needs.sequences), needs.most_chunk);
  const Bytes least_activations = activations_of(needs, least_chunk);
  // Loading stages dense weights before there are caches and activations, and gives that memory back.
  const Bytes loading = needs.process + needs.dense + needs.tables + needs.serve + needs.load_staging;
  const Bytes running = fixed + least_activations + needs.least_staging;
  const bool loads = loading > running;  // is what takes most
  plan.minimum = std::max(running, loading);
  plan.stated = round_up(plan.minimum + kStartMargin, kMiB);
  if (budget < plan.minimum)
    throw too_small(budget, plan, needs, loads ? Bytes{0} : least_activations, loads);

  // The chunk takes at most a quarter of the rest, staging at most another quarter of what then remains.
  Bytes left = budget - fixed - needs.least_staging;
  Bytes room = left;
  if (needs.same_chunk) room -= std::min(left, round_process(needs) - needs.process - needs.tables);
  plan.chunk = largest_chunk(needs, least_chunk, room / 4);
  plan.activations = activations_of(needs, plan.chunk);
  left -= plan.activations;
  plan.staging = needs.least_staging;
  const Bytes in_flight = std::min<Bytes>(needs.top_k, 8);
  for (Bytes expert = 1; expert < in_flight && needs.staging_per_expert > 0; ++expert) {
    if (plan.staging >= (expert + 1) * needs.staging_per_expert) continue;
    const Bytes more = (expert + 1) * needs.staging_per_expert - plan.staging;
    if (more > left / 4) break;
    plan.staging += more;
    left -= more;
  }
  // Whole experts only: then a few pages more or less of the process seldom change a decision. Memory beyond
  // all experts stays free.
  if (needs.expert_bytes > 0)
    plan.experts = std::min(left / needs.expert_bytes, needs.experts) * needs.expert_bytes;
  return plan;
}

Bytes default_budget() {
  const MemoryLimits limits = read_memory_limits();
  const Bytes free = free_memory(limits);
  const Bytes margin = std::max(kMargin, free / 20);
  if (free <= margin) {
    const ComparedBytes sizes = compared_bytes(margin, free);
    throw Error(ErrorKind::kBudget, "hardly any memory is free")
        .in(Setting::kMemory)
        .expected("more than " + sizes.expected)
        .found(sizes.found)
        .fix("close other programs or give " + Setting::kMemory + " SIZE");
  }
  return free - margin;
}

Bytes checked_budget(Bytes budget) {
  const MemoryLimits limits = read_memory_limits();
  const Bytes most =
      limits.cgroup_limit ? std::min(limits.machine_total, *limits.cgroup_limit) : limits.machine_total;
  if (budget > most) {
    const ComparedBytes sizes = compared_bytes(most, budget);
    throw Error(ErrorKind::kBudget, limits.cgroup_limit && *limits.cgroup_limit == most
                                        ? "the budget is larger than the memory limit of this control group"
                                        : "the budget is larger than this machine's memory")
        .in(Setting::kMemory)
        .expected("at most " + sizes.expected)
        .found(sizes.found)
        .fix("leave " + Setting::kMemory + " out for what is free now");
  }
  return budget;
}

namespace {

// Sanitizers add hundreds of MiB to the process, for which no budget is meant. Builds with one count the
// process as it is without them, so that tests of tight budgets stay tight.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC's names
constexpr Bytes kSanitizedProcess = 6 * kMiB;
#else
constexpr Bytes kSanitizedProcess = 0;
#endif

}  // namespace

const ProcessBaseline& process_baseline() {
  static const ProcessBaseline baseline = [] {
    if (kSanitizedProcess > 0) return ProcessBaseline{kSanitizedProcess, heap_in_use()};
    const ProcessMemory memory = read_process_memory();
    return ProcessBaseline{memory.resident - std::min(memory.resident, memory.files) + memory.page_tables,
                           heap_in_use()};
  }();
  return baseline;
}

Bytes measured_peak() {
  const ProcessMemory memory = read_process_memory();
  return memory.peak_resident + memory.page_tables;
}

Bytes process_bytes(Bytes bytes) {
  constexpr Bytes kBytesOfAnEntry = 512;  // bytes mapped for one byte of the page table
  const Bytes code = kSanitizedProcess > 0 ? 0 : read_process_memory().files + kLateCode;
  return process_baseline().own + code + bytes / kBytesOfAnEntry;
}

}  // namespace sluice::engine
