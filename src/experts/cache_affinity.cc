#include "experts/cache_affinity.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "experts/block_eval.h"
#include "experts/makespan.h"

namespace sluice::experts {
namespace {

constexpr double kShareOfLayer = 0.05;  // SPEC §1.5

auto by_run(std::span<const Task> tasks) {
  return [tasks](std::uint32_t i) { return std::tuple(-tasks[i].run, tasks[i].expert, tasks[i].tensor); };
}

// Tasks of one class that have no block yet, in the order of their key.
struct Waiting {
  std::vector<std::uint32_t> tasks;
  std::size_t next = 0;
  bool empty() const { return next == tasks.size(); }
  std::uint32_t front() const { return tasks[next]; }
  std::uint32_t pop() { return tasks[next++]; }
};

class Search {
 public:
  Search(std::span<const Task> tasks, const ScheduleCosts& costs, InsertRule rule, std::uint64_t most_decodes)
      : tasks_(tasks), costs_(costs), rule_(rule), most_decodes_(most_decodes), eval_(tasks, costs) {
    std::vector<std::uint32_t> all(tasks.size());
    std::iota(all.begin(), all.end(), 0u);
    std::ranges::sort(all, {}, by_run(tasks));
    for (std::uint32_t i : all) (is_type_one(tasks[i].state) ? one_ : two_).tasks.push_back(i);
    clock_.workers.resize(costs.workers);
  }

  bool run(Schedule& out) {
    out.order.clear();
    out.block_end.clear();
    while (!one_.empty() || !two_.empty()) {
      if (!make_block()) return false;
      out.order.insert(out.order.end(), block_.begin(), block_.end());
      out.block_end.push_back(static_cast<std::uint32_t>(out.order.size()));
      clock_ = after_;
    }
    return true;
  }

 private:
  // Fills block_, and after_ with the clock at its end.
  bool make_block() {
    block_.assign(1, (one_.empty() ? two_ : one_).pop());
    if (!affordable()) return false;
    double idle = evaluate(after_);
    while (!eval_.dominant(after_) && (!two_.empty() || !one_.empty())) {
      if (!insert((two_.empty() ? one_ : two_).pop(), idle)) return false;
    }
    return true;
  }

  // Puts `task` into the block where it adds no idle time, else after its betters; updates idle and after_.
  bool insert(std::uint32_t task, double& idle) {
    const bool type_one = is_type_one(tasks_[task].state);
    const std::size_t first = rule_ == InsertRule::kAnywhere ? 0 : behind_betters(task, type_one);
    block_.insert(block_.begin() + static_cast<std::ptrdiff_t>(first), task);
    for (std::size_t at = first;; ++at) {
      if (!affordable()) return false;
      if (const double with = evaluate(candidate_, idle); with <= idle) {
        idle = with;
        std::swap(after_, candidate_);
        return true;
      }
      if (at + 1 == block_.size()) break;
      std::swap(block_[at], block_[at + 1]);
    }
    block_.pop_back();
    std::size_t at = behind_betters(task, false);
    if (at == 0) at = behind_betters(task, true);
    block_.insert(block_.begin() + static_cast<std::ptrdiff_t>(at), task);
    if (!affordable()) return false;
    idle = evaluate(after_);
    return true;
  }

  // The position behind the last task of that class whose expert runs at least as long; 0 if there is none.
  std::size_t behind_betters(std::uint32_t task, bool type_one) const {
    for (std::size_t at = block_.size(); at > 0; --at) {
      const Task& other = tasks_[block_[at - 1]];
      if (is_type_one(other.state) == type_one && other.run >= tasks_[task].run) return at;
    }
    return 0;
  }

  bool affordable() const { return eval_.decodes() + block_.size() * costs_.chunks <= most_decodes_; }

  double evaluate(BlockClock& clock, double most_idle = std::numeric_limits<double>::infinity()) {
    clock = clock_;
    return eval_.run(block_, clock, nullptr, most_idle);
  }

  std::span<const Task> tasks_;
  ScheduleCosts costs_;
  InsertRule rule_;
  std::uint64_t most_decodes_;
  BlockEval eval_;
  Waiting one_, two_;
  std::vector<std::uint32_t> block_;
  BlockClock clock_, after_, candidate_;  // before the block; after it; after a trial
};

}  // namespace

void order_p_sorted(std::span<const Task> tasks, Schedule& out) {
  out.order.resize(tasks.size());
  std::iota(out.order.begin(), out.order.end(), 0u);
  std::ranges::sort(out.order, {}, by_run(tasks));
  out.block_end.clear();
  if (!tasks.empty()) out.block_end.push_back(static_cast<std::uint32_t>(tasks.size()));
}

void order_type_two_first(std::span<const Task> tasks, Schedule& out) {
  order_p_sorted(tasks, out);
  std::ranges::stable_partition(out.order, [&](std::uint32_t i) { return !is_type_one(tasks[i].state); });
}

bool order_cache_affinity(std::span<const Task> tasks, const ScheduleCosts& costs, InsertRule rule,
                          std::uint64_t most_decodes, Schedule& out) {
  return Search(tasks, costs, rule, most_decodes).run(out);
}

std::uint64_t affordable_decodes(std::span<const Task> tasks, const ScheduleCosts& costs) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  if (costs.step <= 0) return kAny;
  const double decodes = kShareOfLayer * lower_bounds(tasks, costs).most() / costs.step;
  return decodes < 1e18 ? static_cast<std::uint64_t>(decodes) : kAny;
}

}  // namespace sluice::experts
