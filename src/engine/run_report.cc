#include "engine/run_report.h"

#include "engine/forward/embedding.h"
#include "engine/plan/engine_plan.h"
#include "experts/decision_log.h"
#include "experts/layer_decider.h"
#include "fetch/memory/expert_store.h"
#include "fetch/weight_files.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

// The mean of `bytes` of each routed expert's id; 0 without experts.
template <class BytesOf>
Bytes mean(const model::Model& model, BytesOf bytes) {
  Bytes sum = 0;
  for (const model::ExpertPieces& pieces : model.experts)
    sum += bytes(experts::ExpertId{static_cast<std::uint16_t>(pieces.layer),
                                   static_cast<std::uint16_t>(pieces.index)});
  return model.experts.empty() ? 0 : sum / model.experts.size();
}

}  // namespace

DiskReport RunReport::disk() const {
  const DiskCounters counters = files.reader().counters(), rows = embedding.counters();
  return {counters.bytes + rows.bytes, counters.requests + rows.requests, counters.busy_s + rows.busy_s,
          files.reader().name()};
}

const experts::PrefetchTrial* RunReport::prefetch_trial() const { return decider.prefetch_trial(); }

const experts::MissConstraint* RunReport::constraint() const { return decider.policies().constraint.get(); }

const experts::LossGuard* RunReport::loss_guard() const { return decider.policies().guard.get(); }

std::uint64_t RunReport::scheduler_fallbacks() const { return decider.policies().scheduler->fallbacks(); }

std::uint64_t RunReport::decision_hash() const { return experts::decision_hash(decider.policies()); }

Bytes RunReport::cache_capacity() const { return decider.policies().residencies.front()->capacity(); }

std::optional<Bytes> RunReport::page_cache_bytes() const {
  return files.uses_page_cache() ? std::optional(files.cached_bytes()) : std::nullopt;
}

Bytes RunReport::expert_disk_bytes() const {
  return mean(model, [&](experts::ExpertId id) { return experts.disk_bytes(id); });
}

Bytes RunReport::expert_memory_bytes() const {
  return mean(model, [&](experts::ExpertId id) { return experts.sizes().bytes(id).of(policies.kept); });
}

}  // namespace sluice::engine
