// Constants of docs/trace-format.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace sluice::trace {

inline constexpr std::string_view kTraceMagic = "SLTRACE\n";
inline constexpr std::uint32_t kTraceVersion = 1;
inline constexpr std::uint32_t kMostLayers = 65536, kMostExperts = 65536;  // ids have 16 bits
inline constexpr Bytes kMostHeaderBytes = 64 * kMiB;
inline constexpr Bytes kRecordHeadBytes = 12, kRecordTailBytes = 8;

enum class RecordKind : std::uint32_t { kRun = 1, kStep = 2, kLayer = 3 };

}  // namespace sluice::trace
