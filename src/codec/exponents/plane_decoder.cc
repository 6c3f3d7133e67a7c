#include "codec/exponents/plane_decoder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/exponents/bf16_split.h"
#include "codec/native/damaged_store.h"

namespace sluice::codec {
namespace {

[[noreturn]] void fail(std::uint64_t group) {
  throw Error(ErrorKind::kCorrupt, "exponent chunk is not a valid encoding by native")
      .expected("as many codes in a tier as the tier before says")
      .found("others in group " + std::to_string(group))
      .fix(kDamagedStore);
}

// Kept by each thread that decodes, so that decoding allocates nothing: at most what a group of the widest
// matrix takes (kept_decoding_bytes), which `process` of a memory plan has room for.
std::span<std::byte> scratch(std::uint64_t blocks) {
  thread_local std::vector<std::byte> memory;
  const std::size_t bytes = native_scratch_bytes(blocks);
  if (memory.size() < bytes) memory.resize(bytes);
  return memory;
}

}  // namespace

bool is_codec(std::string_view name) {
  return name == kNativeCodec || std::ranges::any_of(exponent_codecs(), [&](const ExponentCodecEntry& entry) {
           return entry.name == name;
         });
}

std::size_t kept_decoding_bytes(std::string_view codec, std::uint64_t columns) {
  return codec == kNativeCodec ? native_scratch_bytes(TileShape{1, columns}.blocks()) : 0;
}

PlaneDecoder::PlaneDecoder(std::string_view codec, Isa isa)
    : isa_(isa),
      native_(native_kernels(isa)),
      flat_(codec == kNativeCodec ? nullptr : make_exponent_codec(codec)) {}
PlaneDecoder::~PlaneDecoder() = default;

// Calls coded(index, group of the chunk) or raw(index, exponents of the group) for each of these groups.
template <class Coded, class Raw>
void PlaneDecoder::each_group(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles,
                              Groups groups, const Coded& coded, const Raw& raw) const {
  if (groups.count == 0) return;
  const std::uint64_t end = groups.first + groups.count;
  if (kind == ChunkKind::kCodec) {
    const NativeChunk chunk(stored, {tiles.groups(), tiles.blocks()});
    for (std::uint64_t g = groups.first; g < end; ++g)
      if (!coded(g, chunk.group(g))) fail(g);
    return;
  }
  if (stored.size() != tiles.places())
    throw Error(ErrorKind::kCorrupt, "raw exponent chunk has a wrong size")
        .expected(std::to_string(tiles.places()) + " bytes")
        .found(std::to_string(stored.size()))
        .fix(kDamagedStore);
  for (std::uint64_t g = groups.first; g < end; ++g)
    raw(g, stored.subspan(g * tiles.group_places(), tiles.group_places()));
}

void PlaneDecoder::check(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles,
                         std::uint64_t exponents) const {
  // What is decoded only to be checked: at most a group of the widest matrix, or a largest chunk that is not
  // in groups. Commands that check a store count it for each of their threads (store/check/verify.cc).
  thread_local std::vector<std::byte> unused;
  const auto room_for = [&](std::uint64_t bytes) {
    if (unused.size() < bytes) unused.resize(bytes);
    return std::span(unused.data(), bytes);
  };
  if (flat_) return flat_->decode(kind, stored, room_for(exponents));
  SLUICE_CHECK(exponents == tiles.rows * tiles.columns);
  std::byte* const room = scratch(tiles.blocks()).data();
  std::byte* const target = room_for(tiles.group_places()).data();
  each_group(
      kind, stored, tiles, {0, tiles.groups()},
      [&](std::uint64_t, const NativeGroup& group) { return native_.decode(group, room, target); },
      [](std::uint64_t, std::span<const std::byte>) {});
}

void PlaneDecoder::exponents(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles,
                             std::span<std::byte> exponents) const {
  if (flat_) return flat_->decode(kind, stored, exponents);
  SLUICE_CHECK(exponents.size() == tiles.rows * tiles.columns);
  std::vector<std::byte> plane(tiles.places());
  const std::uint64_t bytes = tiles.group_places();
  std::byte* const room = scratch(tiles.blocks()).data();
  each_group(
      kind, stored, tiles, {0, tiles.groups()},
      [&](std::uint64_t g, const NativeGroup& group) {
        return native_.decode(group, room, plane.data() + g * bytes);
      },
      [&](std::uint64_t g, std::span<const std::byte> raw) {
        std::ranges::copy(raw, plane.begin() + static_cast<std::ptrdiff_t>(g * bytes));
      });
  untile(plane, tiles, exponents);
}

void PlaneDecoder::words(ChunkKind kind, std::span<const std::byte> stored,
                         std::span<const std::byte> sign_mantissas, TileShape tiles,
                         std::span<std::byte> words) const {
  if (flat_) {
    const std::span<std::byte> upper = words.last(words.size() / 2);
    flat_->decode(kind, stored, upper);
    return merge(upper, sign_mantissas, words);
  }
  words_of_groups(kind, stored, sign_mantissas, tiles, 0, tiles, words);
}

void PlaneDecoder::words_of_groups(ChunkKind kind, std::span<const std::byte> stored,
                                   std::span<const std::byte> sign_mantissas, TileShape tiles,
                                   std::uint64_t first_group, TileShape some,
                                   std::span<std::byte> words) const {
  SLUICE_CHECK(!flat_ && some.columns == tiles.columns && first_group + some.groups() <= tiles.groups());
  SLUICE_CHECK(words.size() == 2 * some.rows * some.columns && sign_mantissas.size() == some.places());
  std::byte* const room = scratch(tiles.blocks()).data();
  const auto rows = [&](std::uint64_t g) {
    return std::min(kTileRows, some.rows - (g - first_group) * kTileRows);
  };
  const auto plane = [&](std::uint64_t g) {
    return sign_mantissas.data() + (g - first_group) * tiles.group_places();
  };
  const auto out = [&](std::uint64_t g) {
    return words.data() + (g - first_group) * kTileRows * 2 * tiles.columns;
  };
  each_group(
      kind, stored, tiles, {first_group, some.groups()},
      [&](std::uint64_t g, const NativeGroup& group) {
        return native_.merge(group, room, plane(g), rows(g), tiles.columns, out(g), Stores::kCached);
      },
      [&](std::uint64_t g, std::span<const std::byte> raw) {
        native_.merge_raw(raw.data(), plane(g), tiles.blocks(), rows(g), tiles.columns, out(g),
                          Stores::kCached);
      });
}

void PlaneDecoder::merge(std::span<const std::byte> exponents, std::span<const std::byte> sign_mantissas,
                         std::span<std::byte> words) const {
  merge_bf16(exponents, sign_mantissas, words, isa_);
}

}  // namespace sluice::codec
