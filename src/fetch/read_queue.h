// Reads of jobs: those that wait for the disk, and those in flight. Demanded reads go first; others go a
// few at a time, prefetches before updates, and only while no demanded read waits or is in flight.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fetch/fetch_job.h"

namespace sluice::fetch {

// Thread-compatible. Remembers no read once it has landed; keeps its memory.
class ReadQueue {
 public:
  using Tag = std::size_t;  // names a read in flight
  struct Read {
    FetchJob* job = nullptr;
    std::uint32_t run = 0;  // a run of the request
    std::chrono::steady_clock::time_point submitted = {};
  };

  void add(FetchJob& job, std::uint32_t run);   // behind those of its urgency
  void promote(FetchJob& job);                  // no demand so far: it becomes demand
  std::uint32_t withdraw(const FetchJob& job);  // forgets its waiting reads; their number
  bool may_take() const;                        // some read may be given to the disk now
  void take(std::vector<Tag>& tags);            // appends the reads that may; they are in flight now
  const Read& in_flight(Tag tag) const { return flights_[tag]; }
  Read land(Tag tag);  // it is not in flight any more
  void forget_waiting();
  void forget_in_flight();

  bool demand_pending() const { return !waiting_.demand.empty() || in_flight_.demand > 0; }
  std::size_t in_flight() const { return in_flight_.demand + idle_in_flight(); }
  std::size_t size() const {
    return waiting_.demand.size() + waiting_.prefetch.size() + waiting_.update.size() + in_flight();
  }
  const ByUrgency<Bytes>& given() const { return given_; }  // bytes given to the disk so far

 private:
  // In flight: what a demanded read may have to wait for.
  static constexpr std::size_t kMostIdleReads = 2;

  // Reads that use the disk's idle time.
  std::size_t idle_in_flight() const { return in_flight_.prefetch + in_flight_.update; }
  void take_of(Urgency urgency, std::size_t most, std::vector<Tag>& tags);

  ByUrgency<std::vector<Read>> waiting_;
  ByUrgency<std::size_t> in_flight_;
  std::vector<Read> flights_;  // by tag
  std::vector<Tag> free_tags_;
  ByUrgency<Bytes> given_;
};

}  // namespace sluice::fetch
