// The state of one expert in ExpertStore. Only for ExpertStore's own files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/host_buffer.h"
#include "experts/core/ids.h"
#include "fetch/expert_layout.h"
#include "fetch/fetch_job.h"
#include "fetch/memory/expert_stage.h"

namespace sluice::fetch {

// Jobs keep their memory from use to use.
class SpareJobs {
 public:
  std::unique_ptr<FetchJob> take();
  void give(std::unique_ptr<FetchJob> job) { jobs_.push_back(std::move(job)); }

 private:
  std::vector<std::unique_ptr<FetchJob>> jobs_;
};

struct ExpertInMemory {
  experts::ExpertId id;
  ExpertLayout layout;
  std::uint32_t hidden = 0;  // the model's
  // Buffers exist for parts that are held and, while the expert is on its way, for parts that are being made.
  device::HostBuffer full, base, rest;
  experts::Parts held;  // complete and resident
  // Where uses name parts, the parts that the running event computes with, or that a prefetch is for.
  experts::Parts view;
  experts::Parts target;          // the parts that stay once the work under way is done
  experts::Parts settled;         // the parts that ExpertBuffers counts as staying
  std::uint32_t tokens = 0;       // in the running event
  std::unique_ptr<FetchJob> job;  // while it is read, or is withdrawn; perhaps in kInUse
  // No words are made of it: its view is one of planes (`packed`, `low` or `high`).
  bool from_planes = false;

  ExpertStage stage() const { return stage_; }
  bool is_in(ExpertStage stage) const { return stage_ == stage; }
  void enter(ExpertStage next);  // a step that is not legal trips a check

  // Sets from_planes: if there are no words, or, where `may_use_planes`, if it keeps only `parts`.
  void choose_form(bool may_use_planes, experts::Parts parts);
  void make_job(SpareJobs& jobs);  // that makes what `view` and `from_planes` need and is not held
  experts::Parts made() const;     // parts that its job makes
  Bytes job_reads() const;         // bytes that its job asks of the disk
  Bytes job_buffers() const;       // bytes of buffers that its job needs
  experts::Parts needed() const { return layout.rules->needed(view); }  // for its view, if not in words
  bool is_complete() const;  // needs no work before it can be computed with

 private:
  ExpertStage stage_ = ExpertStage::kResting;
};

}  // namespace sluice::fetch
