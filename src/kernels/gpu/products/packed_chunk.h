// The coded exponents of packed matrices as kernels find them (docs/store-format.md, section 4.1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::kernels::gpu {

// A table of these, ascending, ends with one whose first_group is beyond all groups.
struct PackedChunk {
  const std::byte* bytes;
  std::uint64_t size;
  std::uint32_t first_group, groups;
  std::uint32_t coded;  // 0: exponents as they are
};

}  // namespace sluice::kernels::gpu
