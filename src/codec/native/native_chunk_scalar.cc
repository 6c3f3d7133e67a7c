// Decodes place after place, as docs/store-format.md, section 4.1, describes it: the oracle of the vector
// files.
#include <algorithm>
#include <cstring>

#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

// Takes `count` exponents of the tier below, one after the other.
class List {
 public:
  List(const std::byte* first, std::size_t count) : next_(first), end_(first + count) {}
  std::byte take() {
    if (next_ == end_) {
      enough_ = false;
      return {};
    }
    return *next_++;
  }
  bool taken_up() const { return enough_ && next_ == end_; }

 private:
  const std::byte *next_, *end_;
  bool enough_ = true;
};

unsigned bits(std::byte b, unsigned first, unsigned count) {
  return static_cast<unsigned>(b) >> first & ((1u << count) - 1);
}

bool decode_tier3(const NativeGroup& group, std::byte* exponents) {
  const std::byte* const table = group.tiers + 6;
  List literals(group.literals, group.literal_count);
  for (std::size_t first = 0; first < group.codes3; first += 512) {
    const std::size_t n = std::min<std::size_t>(512, group.codes3 - first), m = (n + 7) / 8;
    const std::byte *a = group.tier3 + first / 8 * 3, *b = a + m, *c = b + m;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t s = i / m, j = i % m;
      unsigned code = 0;
      if (s < 6) {
        code = bits((s < 2 ? a : s < 4 ? b : c)[j], s % 2 * 3, 3);
      } else {
        code = bits((s == 6 ? a : b)[j], 6, 2) | bits(c[j], static_cast<unsigned>(s), 1) << 2;
      }
      exponents[first + i] = code == 7 ? literals.take() : table[code];
    }
  }
  return literals.taken_up();
}

bool decode_tier2(const NativeGroup& group, const std::byte* tier3, std::byte* exponents) {
  const std::byte* const table = group.tiers + 3;
  List list(tier3, group.codes3);
  for (std::size_t first = 0; first < group.codes2; first += 256) {
    const std::size_t n = std::min<std::size_t>(256, group.codes2 - first), m = (n + 3) / 4;
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned code = bits(group.tier2[first / 4 + i % m], static_cast<unsigned>(2 * (i / m)), 2);
      exponents[first + i] = code == 3 ? list.take() : table[code];
    }
  }
  return list.taken_up();
}

bool decode(const NativeGroup& group, std::byte* scratch, std::byte* exponents) {
  std::byte* const tier3 = scratch;
  std::byte* const tier2 = scratch + native_room_bytes(group.blocks);
  if (!decode_tier3(group, tier3) || !decode_tier2(group, tier3, tier2)) return false;
  List list(tier2, group.codes2);
  for (std::size_t i = 0; i < group.blocks * kTilePlaces; ++i) {
    const std::size_t half = i / 256, s = i % 256 / 64, j = i % 64;
    const unsigned code = bits(group.tier1[half * 64 + j], static_cast<unsigned>(2 * s), 2);
    exponents[i] = code == 3 ? list.take() : group.tiers[code];
  }
  return list.taken_up();
}

void merge_raw(const std::byte* exponents, const std::byte* sign_mantissas, std::uint64_t, std::uint64_t rows,
               std::uint64_t columns, std::byte* words, Stores) {
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column, words += 2) {
      const std::uint64_t place =
          (column / kTileColumns * kTileRows + row) * kTileColumns + place_of_column(column % kTileColumns);
      const auto e = static_cast<unsigned>(exponents[place]),
                 sm = static_cast<unsigned>(sign_mantissas[place]);
      words[0] = static_cast<std::byte>((e << 7 & 0x80) | (sm & 0x7f));
      words[1] = static_cast<std::byte>((sm & 0x80) | e >> 1);
    }
  }
}

bool merge(const NativeGroup& group, std::byte* scratch, const std::byte* sign_mantissas, std::uint64_t rows,
           std::uint64_t columns, std::byte* words, Stores stores) {
  std::byte* const exponents = scratch + 2 * native_room_bytes(group.blocks);
  if (!decode(group, scratch, exponents)) return false;
  merge_raw(exponents, sign_mantissas, group.blocks, rows, columns, words, stores);
  return true;
}

}  // namespace

constinit const NativeKernels kNativeScalar = {decode, merge, merge_raw};

}  // namespace sluice::codec
