// Sizes in bytes and their spelling on command lines and in reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

using Bytes = std::uint64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

// Every region that O_DIRECT may read or write starts on, and is padded to, this many bytes.
inline constexpr Bytes kBlockBytes = 4096;

constexpr Bytes round_up(Bytes value, Bytes multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr Bytes round_down(Bytes value, Bytes multiple) { return value / multiple * multiple; }

// Reads "8GiB", "1.5G" (a bare K, M, G or T is binary), "500MB" (decimal) or "4096". Error(kUsage) naming
// `flag` for any other text, a negative size, or a size that does not fit.
Bytes parse_size(std::string_view text, std::string_view flag);

std::string format_bytes(Bytes bytes);  // "1.50 GiB"

}  // namespace sluice
