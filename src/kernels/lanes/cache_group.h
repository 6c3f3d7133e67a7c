// The groups that share a scale in a key/value cache of I8.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// This many columns of a head's row share a scale; the last group may have fewer.
inline constexpr std::size_t kCacheGroup = 64;
constexpr std::size_t cache_groups(std::size_t columns) { return (columns + kCacheGroup - 1) / kCacheGroup; }

}  // namespace sluice::kernels
