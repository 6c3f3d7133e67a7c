#include "fetch/memory/expert_in_memory.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::fetch {

using experts::Part;
using experts::PartRules;
using experts::Parts;
using experts::WordSource;

std::unique_ptr<FetchJob> SpareJobs::take() {
  if (jobs_.empty()) return std::make_unique<FetchJob>();
  std::unique_ptr<FetchJob> job = std::move(jobs_.back());
  jobs_.pop_back();
  job->clear();
  return job;
}

void ExpertInMemory::enter(ExpertStage next) {
  SLUICE_CHECK(may_follow(stage_, next), fmt::format("expert {}/{} goes from {} to {}", id.layer, id.index,
                                                     stage_name(stage_), stage_name(next)));
  stage_ = next;
}

void ExpertInMemory::make_job(SpareJobs& jobs) {
  job = jobs.take();
  FetchRequest& request = job->request;
  request.id = id;
  request.layout = &layout;
  const Parts missing = needed() - held;
  request.read_base = layout.rules->in_base(missing);
  request.read_rest = layout.rules->in_rest(missing);
}

Parts ExpertInMemory::made() const {
  const PartRules& rules = *layout.rules;
  return (job->request.read_base ? Parts(rules.base) : Parts()) |
         (job->request.read_rest ? rules.rest : Parts()) | (from_planes ? Parts() : Parts(Part::kFull));
}

Bytes ExpertInMemory::job_reads() const {
  return (job->request.read_base ? layout.base.disk_bytes() : 0) +
         (job->request.read_rest ? layout.rest.disk_bytes() : 0);
}

Bytes ExpertInMemory::job_buffers() const {
  if (layout.rules->words == WordSource::kStored) return layout.view_bytes;
  return (from_planes ? 0 : layout.view_bytes) + (job->request.read_base ? layout.base.bytes : 0) +
         (job->request.read_rest ? layout.rest.bytes : 0);
}

void ExpertInMemory::choose_form(bool may_use_planes, Parts parts) {
  from_planes = layout.rules->words == WordSource::kNowhere || (may_use_planes && !parts.has(Part::kFull));
}

bool ExpertInMemory::is_complete() const {
  return held.has(Part::kFull) || (from_planes && held.has_all(needed()));
}

}  // namespace sluice::fetch
