#include "fetch/memory/expert_in_memory.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::fetch {

using experts::Part;
using experts::Parts;

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
  if (layout.sliced) {
    request.read_base = !held.has(Part::kMsb);
    request.read_rest = view.has(Part::kLsb) && !held.has(Part::kLsb);
  } else {
    request.read_base = !held.has(Part::kSm);
    request.read_rest = layout.split && !held.has(Part::kExp);
  }
}

Parts ExpertInMemory::made() const {
  if (layout.sliced)
    return (job->request.read_base ? Parts(Part::kMsb) : Parts()) |
           (job->request.read_rest ? Parts(Part::kLsb) : Parts());
  if (layout.whole()) return Part::kFull;
  return packed ? kPacked : kPacked | Part::kFull;
}

Bytes ExpertInMemory::job_reads() const {
  return (job->request.read_base ? layout.base.disk_bytes() : 0) +
         (job->request.read_rest ? layout.rest.disk_bytes() : 0);
}

Bytes ExpertInMemory::job_buffers() const {
  if (layout.whole()) return layout.view_bytes;
  return (packed ? 0 : layout.view_bytes) + (job->request.read_base ? layout.base.bytes : 0) +
         (job->request.read_rest ? layout.rest.bytes : 0);
}

bool ExpertInMemory::is_complete() const {
  return held.has(Part::kFull) || (packed && held.has_all(needed()));
}

}  // namespace sluice::fetch
