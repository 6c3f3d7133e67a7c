// An exponent plane of q elements is stored as K chunks; each is compressed, fetched and decoded by itself.
#pragma once

#include <cstdint>

#include "base/setting.h"

namespace sluice::codec {

inline constexpr unsigned kMaxChunks = 256;

struct ElementRange {
  std::uint64_t begin = 0, end = 0;  // [begin, end), in elements
  std::uint64_t size() const { return end - begin; }
};

// Chunk x of K is [floor(x·q/K), floor((x+1)·q/K)) (SPEC 1.2): contiguous, sizes differ by at most one, empty
// when q < K. REQUIRES: chunks in 1..kMaxChunks, chunk < chunks.
ElementRange shard_range(std::uint64_t elements, unsigned chunks, unsigned chunk);

// Checks a K from outside: Error(kUsage) naming `setting` unless it is in 1..kMaxChunks.
unsigned check_chunk_count(std::int64_t chunks, Setting setting);

}  // namespace sluice::codec
