#include "fetch/read_queue.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {

void ReadQueue::add(FetchJob& job, std::uint32_t run) { waiting_[job.urgency_].push_back({&job, run}); }

void ReadQueue::promote(FetchJob& job) {
  SLUICE_CHECK(job.urgency_ != Urgency::kDemand);
  std::erase_if(waiting_[job.urgency_], [&](const Read& read) {
    if (read.job != &job) return false;
    waiting_.demand.push_back(read);
    return true;
  });
  in_flight_[job.urgency_] -= job.reads_in_flight_;
  in_flight_.demand += job.reads_in_flight_;
  job.urgency_ = Urgency::kDemand;
}

std::uint32_t ReadQueue::withdraw(const FetchJob& job) {
  return static_cast<std::uint32_t>(
      std::erase_if(waiting_[job.urgency_], [&](const Read& read) { return read.job == &job; }));
}

bool ReadQueue::may_take() const {
  if (!waiting_.demand.empty()) return true;
  return !(waiting_.prefetch.empty() && waiting_.update.empty()) && in_flight_.demand == 0 &&
         idle_in_flight() < kMostIdleReads;
}

void ReadQueue::take(std::vector<Tag>& tags) {
  take_of(Urgency::kDemand, waiting_.demand.size(), tags);
  if (in_flight_.demand > 0) return;
  for (const Urgency urgency : {Urgency::kPrefetch, Urgency::kUpdate})
    if (idle_in_flight() < kMostIdleReads) take_of(urgency, kMostIdleReads - idle_in_flight(), tags);
}

void ReadQueue::take_of(Urgency urgency, std::size_t most, std::vector<Tag>& tags) {
  std::vector<Read>& waiting = waiting_[urgency];
  const std::size_t count = std::min(most, waiting.size());
  for (std::size_t i = 0; i < count; ++i) {
    Read read = waiting[i];
    read.submitted = std::chrono::steady_clock::now();
    const Bytes length = read.job->request.file_run(read.run).length;
    read.job->begun_ += length;
    read.job->in_flight_ += length;
    read.job->reads_in_flight_ += 1;
    given_[urgency] += length;
    if (free_tags_.empty()) {
      free_tags_.push_back(flights_.size());
      flights_.emplace_back();
    }
    tags.push_back(free_tags_.back());
    flights_[free_tags_.back()] = read;
    free_tags_.pop_back();
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  in_flight_[urgency] += count;
}

ReadQueue::Read ReadQueue::land(Tag tag) {
  const Read read = flights_[tag];
  SLUICE_CHECK(read.job != nullptr, "a read has landed that is not in flight");
  flights_[tag] = {};
  free_tags_.push_back(tag);
  read.job->in_flight_ -= read.job->request.file_run(read.run).length;
  read.job->reads_in_flight_ -= 1;
  --in_flight_[read.job->urgency_];
  return read;
}

void ReadQueue::forget_waiting() {
  for (std::vector<Read>* waiting : {&waiting_.demand, &waiting_.prefetch, &waiting_.update})
    waiting->clear();
}

void ReadQueue::forget_in_flight() {
  flights_.clear();
  free_tags_.clear();
  in_flight_ = {};
}

}  // namespace sluice::fetch
