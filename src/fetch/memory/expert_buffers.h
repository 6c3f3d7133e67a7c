// The memory of all experts: one pool for what is resident and what is on its way, and the bytes that will
// stay once all that has started is done. Only for ExpertStore's own files; ExpertStore's header has the
// rules.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "experts/core/ids.h"
#include "fetch/memory/expert_table.h"

namespace sluice::fetch {

// Thread-compatible. References must outlive it.
class ExpertBuffers {
 public:
  ExpertBuffers(const ExpertTable& experts, device::Accountant& accountant)
      : experts_(experts), accountant_(accountant) {}
  ~ExpertBuffers();
  ExpertBuffers(const ExpertBuffers&) = delete;
  ExpertBuffers& operator=(const ExpertBuffers&) = delete;

  // Once. `page_cache`: the part of the staging that is set aside for pages of reads in flight.
  void configure(Bytes capacity, Bytes staging, Bytes page_cache);
  bool configured() const { return pool_.has_value(); }

  // Whether the expert's job may start: its buffers and reads fit, and its target fits besides what stays.
  bool fits(const ExpertInMemory& expert) const;
  // The same for read-ahead, which leaves room for one demanded expert.
  bool fits_ahead(const ExpertInMemory& expert) const;
  // Whether these parts of it may stay besides all else that stays.
  bool may_stay(const ExpertInMemory& expert, experts::Parts parts) const;
  bool has_room_for_words(const ExpertInMemory& expert) const;

  void take(ExpertInMemory& expert);  // the buffers of its job, and room for its target
  // Buffers for these parts, which come back from a device and will stay, besides room for one demanded
  // expert; false: there is no room. return_ended(): they are there, or will never be.
  bool take_return(ExpertInMemory& expert, experts::Parts parts);
  void return_ended(ExpertInMemory& expert, bool complete);
  void take_words(ExpertInMemory& expert);    // for a job that was to make none
  void job_ended(ExpertInMemory& expert);     // before it gives up its job: the expert holds what was made
  void count_target(ExpertInMemory& expert);  // as what stays of it
  void settle(ExpertInMemory& expert);        // after use: keeps the parts of its target
  void drop(ExpertInMemory& expert, experts::Parts parts);
  // Parts that a job under way builds on have been evicted: they go when the job is done, and are staging
  // till then.
  void lend_to_job(ExpertInMemory& expert, experts::Parts parts);
  // Nothing is under way any more: buffers that were being filled go; of the parts held before, those that
  // were to stay do stay.
  void abandon(ExpertInMemory& expert);
  void abandon_reads() { reading_ = 0; }

 private:
  void keep_planes(ExpertInMemory& expert);

  const ExpertTable& experts_;
  device::Accountant& accountant_;
  std::optional<device::BufferPool> pool_;
  Bytes capacity_ = 0;
  Bytes settled_ = 0;                       // resident bytes once all that has started is done
  Bytes page_cache_ = 0, reading_ = 0;      // bytes set aside for pages of reads; of running jobs' reads
  std::vector<std::byte> extract_scratch_;  // for extract_planes
};

}  // namespace sluice::fetch
