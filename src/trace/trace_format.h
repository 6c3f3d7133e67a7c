// Constants of docs/trace-format.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace sluice::trace {

inline constexpr std::string_view kTraceMagic = "SLTRACE\n";
// Version 1 has neither predictions nor gate inputs; version 2 has one or both.
inline constexpr std::uint32_t kTraceVersion1 = 1, kTraceVersion2 = 2;
inline constexpr std::uint32_t kMostLayers = 65536, kMostExperts = 65536;  // ids have 16 bits
inline constexpr std::uint32_t kMostPredictors = 16, kMostPredictorName = 64, kMostGateInputs = 1 << 20;
inline constexpr Bytes kMostHeaderBytes = 64 * kMiB;
inline constexpr Bytes kRecordHeadBytes = 12, kRecordTailBytes = 8;
// Step, layer and tokens, with which the payloads of a layer begin.
inline constexpr Bytes kLayerFields = 16;

enum class RecordKind : std::uint32_t { kRun = 1, kStep = 2, kLayer = 3, kAhead = 4, kInputs = 5 };

}  // namespace sluice::trace
