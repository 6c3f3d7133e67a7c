#include "codec/exponents/exponent_codec.h"

#include <cstring>

#include "base/error.h"
#include "base/setting.h"
#include "codec/exponents/exponent_codec_impl.h"
#include "codec/native/damaged_store.h"

namespace sluice::codec {

EncodedChunk ExponentCodec::encode(std::span<const std::byte> raw, const StopRequest& stop) const {
  if (!raw.empty()) {
    if (std::optional<std::vector<std::byte>> bytes = compress(raw, stop);
        bytes && bytes->size() < raw.size()) {
      return {ChunkKind::kCodec, std::move(*bytes)};
    }
  }
  return {ChunkKind::kRaw, std::vector<std::byte>(raw.begin(), raw.end())};
}

void ExponentCodec::decode(ChunkKind kind, std::span<const std::byte> bytes, std::span<std::byte> raw) const {
  switch (kind) {
    case ChunkKind::kRaw:
      if (bytes.size() != raw.size()) {
        throw Error(ErrorKind::kCorrupt, "raw exponent chunk has a wrong size")
            .expected(std::to_string(raw.size()) + " bytes")
            .found(std::to_string(bytes.size()))
            .fix(kDamagedStore);
      }
      if (!raw.empty()) std::memcpy(raw.data(), bytes.data(), raw.size());
      return;
    case ChunkKind::kCodec:
      // encode() never makes such a chunk: an empty chunk is raw, and so is a chunk that does not shrink.
      if (bytes.empty() || bytes.size() >= raw.size()) {
        fail_decode(raw.size(), std::to_string(bytes.size()) + " bytes of input, which is not less");
      }
      decompress(bytes, raw);
      return;
  }
  throw Error(ErrorKind::kCorrupt, "unknown kind of exponent chunk")
      .expected("0 (raw) or 1 (codec)")
      .found(std::to_string(static_cast<int>(kind)))
      .fix(kDamagedStore);
}

void ExponentCodec::fail_decode(std::size_t expected_bytes, std::string_view found) const {
  throw Error(ErrorKind::kCorrupt, "exponent chunk is not a valid encoding by " + std::string(name()))
      .expected("a chunk of " + std::to_string(expected_bytes) + " bytes")
      .found(found)
      .fix(kDamagedStore);
}

std::span<const ExponentCodecEntry> exponent_codecs() {
  static const ExponentCodecEntry entries[] = {
      {"zstd", "Zstandard: smaller", kZstdDefaultLevel, zstd_min_level(), zstd_max_level(), make_zstd_codec},
      {"lz4", "LZ4HC: faster to decode", kLz4DefaultLevel, lz4_min_level(), lz4_max_level(), make_lz4_codec},
      {"none", "exponents as they are", 0, 0, 0, make_none_codec},
  };
  return entries;
}

std::unique_ptr<const ExponentCodec> make_exponent_codec(std::string_view name, std::optional<int> level) {
  std::string known;
  for (const ExponentCodecEntry& entry : exponent_codecs()) {
    if (entry.name == name) {
      const int chosen = level.value_or(entry.default_level);
      if (level && entry.min_level == entry.max_level) {
        throw Error(ErrorKind::kUsage, "codec " + std::string(name) + " has no levels")
            .in(Setting::kLevel)
            .expected("no level")
            .found(std::to_string(chosen))
            .fix("leave " + Setting::kLevel + " out");
      }
      if (chosen < entry.min_level || chosen > entry.max_level) {
        throw Error(ErrorKind::kUsage, "level is out of range for codec " + std::string(name))
            .in(Setting::kLevel)
            .expected(std::to_string(entry.min_level) + " to " + std::to_string(entry.max_level))
            .found(std::to_string(chosen))
            .fix("leave " + Setting::kLevel + " out for the usual one");
      }
      return entry.make(chosen);
    }
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  throw Error(ErrorKind::kUnsupported, "unknown exponent codec")
      .expected("one of: " + known)
      .found("\"" + std::string(name) + "\"")
      .fix("pack the model again with one of these");
}

}  // namespace sluice::codec
