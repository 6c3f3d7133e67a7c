#include "experts/schedule/zip_blocks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace sluice::experts {
namespace {

constexpr double kShareOfLayer = 0.05;  // SPEC §1.5

auto by_run(std::span<const Task> tasks) {
  return [tasks](std::uint32_t i) { return std::tuple(-tasks[i].run, tasks[i].expert, tasks[i].tensor); };
}

}  // namespace

void CacheAffinity::begin(std::span<const Task> tasks, const ScheduleCosts& costs) {
  tasks_ = tasks;
  costs_ = costs;
  eval_.reset(tasks, costs);
  all_.resize(tasks.size());
  std::iota(all_.begin(), all_.end(), 0u);
  std::ranges::sort(all_, {}, by_run(tasks));
  for (Waiting* const waiting : {&one_, &two_}) {
    waiting->tasks.clear();
    waiting->next = 0;
  }
  for (std::uint32_t i : all_) (is_type_one(tasks[i].state) ? one_ : two_).tasks.push_back(i);
  clock_.io = 0;
  clock_.workers.assign(costs.workers, 0.0);
}

bool CacheAffinity::order(std::span<const Task> tasks, const ScheduleCosts& costs, InsertRule rule,
                          std::uint64_t most_decodes, Schedule& out) {
  rule_ = rule;
  most_decodes_ = most_decodes;
  begin(tasks, costs);
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

// Fills block_, and sets after_ to the clock at its end.
bool CacheAffinity::make_block() {
  block_.assign(1, (one_.empty() ? two_ : one_).pop());
  if (!affordable()) return false;
  double idle = evaluate(after_);
  while (!eval_.dominant(after_) && (!two_.empty() || !one_.empty())) {
    if (!insert((two_.empty() ? one_ : two_).pop(), idle)) return false;
  }
  return true;
}

// Puts `task` into the block where it adds no idle time, else behind its betters; updates idle and after_.
bool CacheAffinity::insert(std::uint32_t task, double& idle) {
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
std::size_t CacheAffinity::behind_betters(std::uint32_t task, bool type_one) const {
  for (std::size_t at = block_.size(); at > 0; --at) {
    const Task& other = tasks_[block_[at - 1]];
    if (is_type_one(other.state) == type_one && other.run >= tasks_[task].run) return at;
  }
  return 0;
}

bool CacheAffinity::affordable() const {
  return eval_.decodes() + block_.size() * costs_.chunks <= most_decodes_;
}

double CacheAffinity::evaluate(BlockClock& clock, double most_idle) {
  clock = clock_;
  return eval_.run(block_, clock, nullptr, most_idle);
}

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

std::uint64_t CacheAffinity::affordable_decodes(std::span<const Task> tasks, const ScheduleCosts& costs) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  if (costs.step <= 0) return kAny;
  const double decodes = kShareOfLayer * lower_bounds(tasks, costs, bounds_).most() / costs.step;
  return decodes < 1e18 ? static_cast<std::uint64_t>(decodes) : kAny;
}

}  // namespace sluice::experts
