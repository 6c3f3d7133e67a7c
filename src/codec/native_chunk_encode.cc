#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "codec/entropy.h"
#include "codec/native_chunk.h"

namespace sluice::codec {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

constexpr std::size_t kLine = 64, kTier1 = 3, kTier2 = 3, kTier3 = 7;
constexpr std::uint8_t kLiteral = 3;

// What becomes of each exponent.
struct Code {
  std::uint8_t tier = kLiteral;                  // 0, 1, 2: of tier 1, 2, 3
  std::uint8_t code1 = 3, code2 = 3, code3 = 7;  // in its tier, or "look in the next"
};

struct Tiers {
  std::array<std::uint8_t, kTier1 + kTier2 + kTier3> exponents{};
  std::array<Code, 256> codes{};
};

// f(line of 64 exponents, how many columns of it are no padding), in the order of places.
template <class F>
void for_each_line(std::span<const std::byte> exponents, TileShape shape, std::uint64_t group, const F& f) {
  std::span<const std::byte> rest = exponents.subspan(group * shape.group_places(), shape.group_places());
  for (std::uint64_t block = 0; block < shape.blocks(); ++block) {
    for (std::size_t r = 0; r < kTileRows; ++r, rest = rest.subspan(kTileColumns)) {
      f(rest.first<kTileColumns>(), group * kTileRows + r < shape.rows ? columns_in_block(shape, block) : 0);
    }
  }
}

Tiers choose_tiers(std::span<const std::byte> exponents, TileShape shape) {
  ExponentHistogram histogram;
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    for_each_line(exponents, shape, group,
                  [&](std::span<const std::byte, kTileColumns> line, std::size_t columns) {
                    if (columns == kTileColumns) return histogram.add_exponents(line);
                    for (std::size_t c = 0; c < columns; ++c)
                      histogram.add_exponents(line.subspan(place_of_column(c), 1));
                  });
  }
  std::array<std::uint8_t, 255> order{};  // 255 is always a literal
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return histogram.count(a) > histogram.count(b); });
  Tiers tiers;
  if (histogram.count(order[0]) > 0) tiers.exponents.fill(order[0]);
  for (std::uint8_t i = 0; i < tiers.exponents.size() && histogram.count(order[i]) > 0; ++i) {
    tiers.exponents[i] = order[i];
    Code& code = tiers.codes[order[i]];
    if (i < kTier1) {
      code = {.tier = 0, .code1 = i};
    } else if (i < kTier1 + kTier2) {
      code = {.tier = 1, .code2 = static_cast<std::uint8_t>(i - kTier1)};
    } else {
      code = {.tier = 2, .code3 = static_cast<std::uint8_t>(i - kTier1 - kTier2)};
    }
  }
  return tiers;
}

// A group's codes, one a byte.
struct GroupCodes {
  // A list that is full has one place more, which is written and not kept.
  explicit GroupCodes(std::size_t places)
      : codes1(places + 1), codes2(places + 1), codes3(places + 1), literals(places + 1) {}

  // The first columns of a line, of which the others are padding.
  void add(std::span<const std::byte, kTileColumns> line, std::size_t columns,
           const std::array<Code, 256>& codes) {
    std::uint8_t *next1 = &codes1[n1], *next2 = &codes2[n2], *next3 = &codes3[n3],
                 *next_literal = &literals[n_literals];
    for (std::size_t p = 0; p < kTileColumns; ++p) {
      const auto exponent = static_cast<std::uint8_t>(line[p]);
      const bool padding = columns < kTileColumns && column_of_place(p) >= columns;
      const Code code = padding ? Code{.tier = 0, .code1 = 0} : codes[exponent];
      *next1++ = code.code1;
      // Every list takes every place, and keeps it or not: there is nothing to predict.
      *next2 = code.code2;
      *next3 = code.code3;
      *next_literal = exponent;
      next2 += code.tier > 0;
      next3 += code.tier > 1;
      next_literal += code.tier == kLiteral;
    }
    n1 += kTileColumns;
    n2 = static_cast<std::size_t>(next2 - codes2.data());
    n3 = static_cast<std::size_t>(next3 - codes3.data());
    n_literals = static_cast<std::size_t>(next_literal - literals.data());
  }
  void clear() { n1 = n2 = n3 = n_literals = 0; }

  Bytes8 codes1, codes2, codes3, literals;
  std::size_t n1 = 0, n2 = 0, n3 = 0, n_literals = 0;
};

// Four lines of 2-bit codes, `apart` from each other, to `count` bytes.
void pack_two_bits(const std::uint8_t* codes, std::size_t apart, std::size_t count, std::byte* bytes) {
  for (std::size_t j = 0; j < count; ++j) {
    bytes[j] = static_cast<std::byte>(codes[j] | codes[apart + j] << 2 | codes[2 * apart + j] << 4 |
                                      codes[3 * apart + j] << 6);
  }
}

void append_tier2(const GroupCodes& group, std::vector<std::byte>& out) {
  for (std::size_t first = 0; first < group.n2; first += 256) {
    const std::size_t n = std::min<std::size_t>(256, group.n2 - first), m = (n + 3) / 4;
    std::array<std::uint8_t, 256 + 3> codes{};
    std::copy_n(&group.codes2[first], n, codes.begin());
    out.resize(out.size() + m);
    pack_two_bits(codes.data(), m, m, out.data() + out.size() - m);
  }
}

void append_tier3(const GroupCodes& group, std::vector<std::byte>& out) {
  for (std::size_t first = 0; first < group.n3; first += 512) {
    const std::size_t n = std::min<std::size_t>(512, group.n3 - first), m = (n + 7) / 8;
    std::array<std::uint8_t, 512 + 7> codes{};
    std::copy_n(&group.codes3[first], n, codes.begin());
    const auto code = [&](std::size_t s, std::size_t j) { return unsigned{codes[s * m + j]}; };
    out.resize(out.size() + 3 * m);
    std::byte* const bytes = out.data() + out.size() - 3 * m;
    for (std::size_t j = 0; j < m; ++j) {
      const unsigned six = code(6, j), seven = code(7, j);
      bytes[j] = static_cast<std::byte>(code(0, j) | code(1, j) << 3 | (six & 3) << 6);
      bytes[m + j] = static_cast<std::byte>(code(2, j) | code(3, j) << 3 | (seven & 3) << 6);
      bytes[2 * m + j] =
          static_cast<std::byte>(code(4, j) | code(5, j) << 3 | six >> 2 << 6 | seven >> 2 << 7);
    }
  }
}

void put_u32(std::uint64_t value, std::byte* p) {
  for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(value >> 8 * i);
}

}  // namespace

std::vector<std::byte> encode_native(std::span<const std::byte> exponents, TileShape shape) {
  SLUICE_CHECK(exponents.size() == shape.places(),
               std::to_string(exponents.size()) + ", " + std::to_string(shape.places()));
  if (exponents.empty()) return {};
  const Tiers tiers = choose_tiers(exponents, shape);
  const std::uint64_t directory_end = 16 + 12 * shape.groups() + 4;
  const std::uint64_t tier1_begin = round_up(directory_end, kLine);
  std::vector<std::byte> out(tier1_begin + exponents.size() / 4);
  std::transform(tiers.exponents.begin(), tiers.exponents.end(), out.begin(),
                 [](std::uint8_t e) { return std::byte{e}; });
  GroupCodes codes(shape.group_places());
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    codes.clear();
    for_each_line(exponents, shape, group,
                  [&](std::span<const std::byte, kTileColumns> line, std::size_t columns) {
                    codes.add(line, columns, tiers.codes);
                  });
    std::byte* const entry = &out[16 + 12 * group];
    put_u32(out.size(), entry);
    put_u32(codes.n2, entry + 4);
    put_u32(codes.n3, entry + 8);
    std::byte* const tier1 = &out[tier1_begin + group * (shape.group_places() / 4)];
    for (std::size_t half = 0; half < 2 * shape.blocks(); ++half) {  // 4 rows of a block
      pack_two_bits(&codes.codes1[half * 4 * kLine], kLine, kLine, tier1 + half * kLine);
    }
    append_tier2(codes, out);
    append_tier3(codes, out);
    for (std::size_t i = 0; i < codes.n_literals; ++i) out.push_back(std::byte{codes.literals[i]});
    if (out.size() >= exponents.size() || out.size() > std::numeric_limits<std::uint32_t>::max()) return {};
  }
  put_u32(out.size(), &out[directory_end - 4]);
  out.resize(round_up(out.size(), kLine));
  if (out.size() >= exponents.size()) return {};
  return out;
}

}  // namespace sluice::codec
