// Constants of the packed store. The format is docs/store-format.md; section numbers below are its.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace sluice::store {

// Section 1: files.
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kHeadersName = "headers.bin";
inline constexpr std::string_view kDenseName = "dense.bin";
inline constexpr std::string_view kFilesDirectory = "files";
inline constexpr std::string_view kSidecarDirectory = "sidecar";

// Section 2: the manifest.
inline constexpr std::uint64_t kFormatVersion = 1;
inline constexpr std::string_view kManifestStart = "{\"format\":\"sluice\",\"version\":";
inline constexpr std::string_view kChecksumStart = ",\n\"checksum\":\"";
inline constexpr std::string_view kChecksumEnd = "\"}\n";
inline constexpr std::size_t kChecksumTailBytes = kChecksumStart.size() + 16 + kChecksumEnd.size();
static_assert(kChecksumTailBytes == 33);
inline constexpr Bytes kMaxManifestBytes = kGiB;
inline constexpr Bytes kMaxRestBytes = 2 * kGiB;  // the rest of a weight file, in headers.bin

// Section 3: layout.
inline constexpr Bytes kRegionAlignment = kBlockBytes;
inline constexpr Bytes kPieceAlignment = 64;

// Section 4: which pieces the writer splits, and into what.
inline constexpr Bytes kMinSplitDenseBytes = 64 * kKiB;
inline constexpr std::uint64_t kDenseChunkElements = std::uint64_t{1} << 20;

// Section 5: sidecars.
inline constexpr std::string_view kSidecarStart = "{\"sidecar\":1,\"manifest\":\"";
inline constexpr Bytes kMaxSidecarBytes = 256 * kMiB;
inline constexpr std::string_view kTablesMagic = "SLUICETB";
inline constexpr std::uint32_t kTablesLayout = 1;
inline constexpr std::size_t kMaxTables = 64;
inline constexpr Bytes kTableAlignment = 64;

// Section 6: unfinished stores.
inline constexpr std::string_view kPartialSuffix = ".partial";
inline constexpr std::string_view kJournalName = "journal";

}  // namespace sluice::store
