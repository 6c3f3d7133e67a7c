#include "experts/placement/balancer.h"

#include <numeric>

#include "base/error.h"

namespace sluice::experts {

Balance Balancer::balance(BalanceRule rule, std::span<const std::uint32_t> tokens,
                          std::span<const double> host_times, double load_time) {
  SLUICE_CHECK(tokens.size() == host_times.size());
  order_.resize(tokens.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return tokens[a] != tokens[b] ? tokens[a] > tokens[b] : a < b;
  });
  for (std::size_t i = 1; i < order_.size(); ++i)
    SLUICE_CHECK(host_times[order_[i]] <= host_times[order_[i - 1]]);

  Balance balance;
  std::size_t left = 0, right = order_.size();  // [left, right) is not decided
  while (left < right) {
    const double host_next = balance.host_time + host_times[order_[right - 1]];
    const bool loads = rule == BalanceRule::kLiteral ? balance.load_time <= balance.host_time
                                                     : balance.load_time + load_time <= host_next;
    if (loads) {
      balance.load_time += load_time;
      ++left;
    } else {
      balance.host_time = host_next;
      --right;
    }
  }
  balance.loads = std::span(order_).first(left);
  balance.host = std::span(order_).subspan(left);
  return balance;
}

}  // namespace sluice::experts
