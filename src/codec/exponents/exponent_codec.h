// Compression of exponent chunks. A store has one codec, chosen by name; each codec is one file
// (exponent_codec_zstd.cc …).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/stop_request.h"

namespace sluice::codec {

// A codec that compresses asks whether to stop at least once per this many bytes, which is a tenth of a
// second's work at the slowest level.
inline constexpr std::size_t kBytesPerStopRequest = 128 * kKiB;

enum class ChunkKind : std::uint8_t {
  kRaw,    // uncompressed: the chunk did not shrink (SPEC 1.2), or the codec is `none`
  kCodec,  // compressed by the codec of the store
};

struct EncodedChunk {
  ChunkKind kind = ChunkKind::kRaw;
  std::vector<std::byte> bytes;
};

// Thread-safe: several threads may encode and decode with one object at the same time. The object keeps the
// library's working memory for later calls, never more than as many threads have used at once.
class ExponentCodec {
 public:
  virtual ~ExponentCodec() = default;
  virtual std::string_view name() const = 0;
  virtual int level() const = 0;  // 0 for a codec without levels

  // Deterministic for one version of the library. Raw whenever raw is not longer. Error(kUnsupported) for a
  // chunk that the codec cannot take (the message advises more chunks); Error(kInterrupted) if `stop` says
  // so.
  EncodedChunk encode(std::span<const std::byte> raw, const StopRequest& stop = {}) const;

  // Fills `raw`, whose size the caller knows, and writes nowhere else. Error(kCorrupt) unless `bytes` is
  // exactly one encoding of exactly raw.size() bytes; `raw` is then unspecified. The caller adds path and
  // offset.
  void decode(ChunkKind kind, std::span<const std::byte> bytes, std::span<std::byte> raw) const;

  // The most working memory that one thread uses to encode or decode; for the budget.
  virtual Bytes encode_context_bytes() const = 0;
  virtual Bytes decode_context_bytes() const = 0;

 protected:
  // Encoding of a non-empty chunk; empty if it does not fit in raw.size() − 1 bytes.
  virtual std::optional<std::vector<std::byte>> compress(std::span<const std::byte> raw,
                                                         const StopRequest& stop) const = 0;
  // Same contract as decode() for a kCodec chunk.
  virtual void decompress(std::span<const std::byte> bytes, std::span<std::byte> raw) const = 0;
  // Throws this codec's Error(kCorrupt).
  [[noreturn]] void fail_decode(std::size_t expected_bytes, std::string_view found) const;
};

// The registry: one row per codec, with its name on the command line.
struct ExponentCodecEntry {
  std::string_view name;
  std::string_view summary;                 // for the help of the command line
  int default_level, min_level, max_level;  // all 0: the codec has no levels
  std::unique_ptr<const ExponentCodec> (*make)(int level);
};
std::span<const ExponentCodecEntry> exponent_codecs();

// `level`: what the user chose; the codec's usual one if empty. Error(kUnsupported) that lists the known
// names for an unknown name; Error(kUsage) for a level out of range.
std::unique_ptr<const ExponentCodec> make_exponent_codec(std::string_view name,
                                                         std::optional<int> level = {});

}  // namespace sluice::codec
