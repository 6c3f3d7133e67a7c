#include "fetch/ready_queue.h"

#include <algorithm>

namespace sluice::fetch {
namespace {

bool later(const ReadyQueue::Entry& a, const ReadyQueue::Entry& b) { return a.turn > b.turn; }

void remove_from(std::vector<ReadyQueue::Entry>& heap, const FetchJob& job) {
  if (std::erase_if(heap, [&](const ReadyQueue::Entry& entry) { return entry.job == &job; }) > 0)
    std::make_heap(heap.begin(), heap.end(), later);
}

}  // namespace

void ReadyQueue::push(Urgency urgency, const Entry& entry) {
  std::vector<Entry>& heap = heaps_[urgency];
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end(), later);
}

ReadyQueue::Entry ReadyQueue::take() {
  std::vector<Entry>& heap = !heaps_.demand.empty()     ? heaps_.demand
                             : !heaps_.prefetch.empty() ? heaps_.prefetch
                                                        : heaps_.update;
  std::pop_heap(heap.begin(), heap.end(), later);
  const Entry entry = heap.back();
  heap.pop_back();
  return entry;
}

void ReadyQueue::promote(const FetchJob& job) {
  for (std::vector<Entry>* heap : {&heaps_.prefetch, &heaps_.update}) {
    for (const Entry& entry : *heap)
      if (entry.job == &job) push(Urgency::kDemand, entry);
    remove_from(*heap, job);
  }
}

void ReadyQueue::remove(const FetchJob& job) {
  for (std::vector<Entry>* heap : {&heaps_.demand, &heaps_.prefetch, &heaps_.update}) remove_from(*heap, job);
}

void ReadyQueue::clear() {
  for (std::vector<Entry>* heap : {&heaps_.demand, &heaps_.prefetch, &heaps_.update}) heap->clear();
}

}  // namespace sluice::fetch
