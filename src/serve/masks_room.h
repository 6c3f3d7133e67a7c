// The part of the account `serve` that masks of bound answers may take.
#pragma once

#include <algorithm>
#include <cstddef>

namespace sluice::serve {

// With the tree of the vocabulary; HTTP shares the rest.
constexpr std::size_t masks_room(std::size_t account) {
  constexpr std::size_t kMost = std::size_t{12} << 20;
  return std::min(account / 4, kMost);
}

}  // namespace sluice::serve
