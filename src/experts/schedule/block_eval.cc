#include "experts/schedule/block_eval.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

double BlockEval::run(std::span<const std::uint32_t> block, BlockClock& clock, std::vector<double>* ready,
                      double most_idle) {
  const std::size_t chunks = costs_.chunks, size = block.size();
  available_.clear();
  for (std::uint32_t task : block) {
    if (!reads_exp(tasks_[task].state)) continue;
    for (std::size_t x = 0; x < chunks; ++x) available_.push_back(clock.io += costs_.v);
  }
  for (std::uint32_t task : block) {
    if (reads_sm(tasks_[task].state)) clock.io += costs_.u;
    if (ready != nullptr) (*ready)[task] = reads_sm(tasks_[task].state) ? clock.io : 0;
  }

  // Chunks that are read become available in task order; all other chunks are in memory. So the first chunk
  // that can start is the front of one of the two queues.
  struct Front {
    std::size_t position = 0;  // in the block
    std::size_t chunk = 0;     // within that task
  } read, there;
  // Counts chunks of `read`.
  std::size_t next_available = 0;
  const auto settle = [&](Front& front, bool reads) {
    if (front.chunk == chunks) front = {front.position + 1, 0};
    while (front.position < size && reads_exp(tasks_[block[front.position]].state) != reads) ++front.position;
  };
  settle(read, true);
  settle(there, false);

  std::vector<double>& workers = clock.workers;
  double idle = 0;
  for (std::size_t left = size * chunks; left > 0; --left) {
    ++decodes_;
    const double free = *std::ranges::min_element(workers);
    const bool waits = read.position < size;
    double start = free;
    if (there.position == size) start = std::max(available_[next_available], free);
    const bool takes_read = waits && read.position < there.position && available_[next_available] <= start;
    std::size_t worker = workers.size();
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (workers[i] <= start && (worker == workers.size() || workers[i] > workers[worker])) worker = i;
    }
    idle += start - workers[worker];
    if (idle > most_idle) return idle;
    workers[worker] = start + costs_.c;
    Front& front = takes_read ? read : there;
    if (ready != nullptr) {
      double& at = (*ready)[block[front.position]];
      at = std::max(at, workers[worker]);
    }
    if (takes_read) ++next_available;
    ++front.chunk;
    settle(front, takes_read);
  }
  return idle;
}

bool BlockEval::dominant(const BlockClock& clock) {
  sorted_ = clock.workers;
  std::ranges::sort(sorted_);
  const std::size_t most = std::min<std::size_t>(sorted_.size(), costs_.chunks);
  for (std::size_t l = 1; l <= most; ++l) {
    if (sorted_[l - 1] - clock.io < static_cast<double>(l) * costs_.v) return false;
  }
  return true;
}

}  // namespace sluice::experts
