// Operations of all jobs that can be done now: demand before prefetch before update, each in block order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fetch/fetch_job.h"

namespace sluice::fetch {

// Thread-compatible. Keeps its memory.
class ReadyQueue {
 public:
  struct Entry {
    std::uint64_t turn = 0;  // lowest first
    FetchJob* job = nullptr;
    std::uint32_t op = 0;  // an operation of the job's graph
  };

  bool empty() const { return size() == 0; }
  std::size_t size() const { return heaps_.demand.size() + heaps_.prefetch.size() + heaps_.update.size(); }
  void push(Urgency urgency, const Entry& entry);
  Entry take();                       // REQUIRES: not empty
  void promote(const FetchJob& job);  // its operations are demanded now
  void remove(const FetchJob& job);
  void clear();

 private:
  ByUrgency<std::vector<Entry>> heaps_;  // the lowest turn in front
};

}  // namespace sluice::fetch
