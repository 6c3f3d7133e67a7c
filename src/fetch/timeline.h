// The executor's operations one by one, for pictures and for comparing plan and run.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "experts/core/ids.h"

namespace sluice::fetch {

struct TimelineEntry {
  enum class Kind : std::uint8_t { kRead, kCheck, kDecode, kMerge, kCompute };
  Kind kind;
  experts::ExpertId expert;
  std::uint16_t tensor = 0, chunk = 0;  // for kDecode and kMerge; tensor also for kCheck
  Bytes bytes = 0;                      // for kRead
  std::uint32_t thread = 0;             // small numbers in order of first appearance; 0 for reads
  std::chrono::steady_clock::time_point begin, end;
};

// add() is thread-safe; call the other functions only when nothing runs.
class Timeline {
 public:
  void add(TimelineEntry entry);                                          // fills in `thread`
  const std::vector<TimelineEntry>& entries() const { return entries_; }  // in order of their ends
  void clear() { entries_.clear(); }

 private:
  std::mutex mutex_;
  std::vector<TimelineEntry> entries_;
  std::vector<std::thread::id> threads_;
};

}  // namespace sluice::fetch
