// Divides the outputs of a kernel between the threads of a Context.
#pragma once

#include <cstddef>

#include "base/machine/thread_pool.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Waking a worker costs some microseconds: below this many multiply-adds (or numbers read) one thread does
// all the work.
inline constexpr std::size_t kSplitCost = std::size_t{1} << 16;

inline unsigned threads(const Context& ctx) { return ctx.pool == nullptr ? 1 : ctx.pool->threads(); }

// Calls body(begin, end) over [0, count), with boundaries at multiples of `grain`. `cost`: the work of the
// whole call.
template <class Body>
void split(const Context& ctx, std::size_t count, std::size_t grain, std::size_t cost, const Body& body) {
  if (count == 0) return;
  if (threads(ctx) == 1 || cost < kSplitCost || count <= grain) return body(std::size_t{0}, count);
  ctx.pool->parallel_ranges(count, grain, body);
}

}  // namespace sluice::kernels
