// Measures a profile on this machine with the model's own weights and the engine's own code. SPEC §1.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/stop_request.h"
#include "engine/plan/profile.h"
#include "kernels/context.h"

namespace sluice {
class ThreadPool;
namespace device {
class Accountant;
}
namespace fetch {
class WeightFiles;
}
}  // namespace sluice

namespace sluice::engine {

class WorkspaceBuffer;  // workspace.h

struct MeasureOptions {
  std::size_t repeats = 9;          // for every cost
  std::uint64_t seed = 0;           // selects the experts to read
  Bytes sample_bytes = 128 * kMiB;  // most bytes read at a time; at least one expert
  StopRequest stop = {};            // asked before each repeat; Error(kInterrupted) if it says so
};

// The engine's parts that the measurement uses. All must be idle; nothing in them changes.
struct MeasureTools {
  const store::Checkpoint& checkpoint;
  const model::Model& model;
  fetch::WeightFiles& files;
  const fetch::ExpertStore& experts;
  ThreadPool& pool;
  kernels::Context kernels;
  device::Accountant& accountant;  // samples are charged to `staging`, at most half of the free budget
  const WorkspaceBuffer& workspace;
  std::function<void()> decode_step_without_experts;
  // The same for some tokens of a prompt, at most those of `workspace`, without the head; and scores of a
  // router for one token, behind either.
  std::function<void(std::size_t tokens)> layers_without_experts;
  std::function<void()> score_one_token;
  std::size_t positions = 0;  // most tokens of a step without experts
};

// Numbers of tokens that experts are computed for: 1, 2, 4 … as far as the workspace holds them.
std::vector<std::uint32_t> measured_token_counts(const MeasureTools& tools);

// Experts in slices have none of the costs of reading and decoding. Error(kBudget) if not even one expert
// fits; Error(kIo), (kCorrupt).
Profile measure_profile(const MeasureTools& tools, const ProfiledMachine& machine,
                        const MeasureOptions& options);

}  // namespace sluice::engine
