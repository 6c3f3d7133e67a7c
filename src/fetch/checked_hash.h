// Compares stored weights with their checksum.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"

namespace sluice::fetch {

// Error(kCorrupt) naming file and offset unless the XXH3 of `data` is `expected`. Thread-safe.
void check_hash(std::span<const std::byte> data, std::uint64_t expected, const std::string& path,
                Bytes offset);
[[noreturn]] void throw_hash_mismatch(Bytes bytes, std::uint64_t expected, std::uint64_t found,
                                      const std::string& path, Bytes offset);

}  // namespace sluice::fetch
