#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "codec/native/native_chunk.h"
#include "codec/native/native_encode_impl.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kLine = 64, kTier1 = 3, kTier2 = 3, kTier3 = 7;
constexpr std::uint64_t kTableBytes = kTier1 + kTier2 + kTier3, kEntryBytes = 12, kMaxCodes3 = 0xffffff;

using Table = std::array<std::byte, kTableBytes>;
using Histogram = std::array<std::uint32_t, 256>;

// Counts the exponents without the `padding` zeros among them.
Histogram histogram_of(std::span<const std::byte> exponents, std::uint64_t padding) {
  // Several tables: neighbours are often equal, and a single counter would wait for its own last store.
  std::array<Histogram, 8> lanes{};
  for (std::size_t i = 0; i < exponents.size(); i += lanes.size()) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, &exponents[i], sizeof(eight));
    for (Histogram& lane : lanes) {
      ++lane[eight & 0xff];
      eight >>= 8;
    }
  }
  Histogram sum{};
  for (const Histogram& lane : lanes)
    std::transform(sum.begin(), sum.end(), lane.begin(), sum.begin(), std::plus<>());
  sum[0] -= static_cast<std::uint32_t>(padding);
  return sum;
}

std::uint64_t rows_in_group(TileShape shape, std::uint64_t group) {
  return std::min<std::uint64_t>(kTileRows, shape.rows - group * kTileRows);
}

// The most frequent exponents, ties by the lower one; unused entries repeat the first one.
template <class Counts>
Table table_of(const Counts& counts) {
  std::array<std::uint8_t, 255> order{};  // 255 is always a literal
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  Table table{};
  std::partial_sort(
      order.begin(), order.begin() + table.size(), order.end(),
      [&](std::uint8_t a, std::uint8_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = counts[order[i]] > 0 ? std::byte{order[i]} : i == 0 ? std::byte{0} : table[0];
  return table;
}

// Bits that a group saves with this table, compared with literals only: every exponent costs 2 bits,
// exponents outside tier 1 cost 2 more, those outside tier 2 another 3, and those in no tier another 8.
std::uint64_t bits_saved(const Histogram& histogram, const Table& table) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (i > 0 && table[i] == table[0]) break;  // unused from here on
    bits += std::uint64_t{histogram[std::to_integer<std::size_t>(table[i])]} * (i < kTier1            ? 13
                                                                                : i < kTier1 + kTier2 ? 11
                                                                                                      : 8);
  }
  return bits;
}

// The tables of a chunk, and the table that each group uses.
struct Tables {
  std::vector<Table> tables;
  std::vector<std::uint8_t> of_group;
};

constexpr std::uint64_t kCandidates = 16;

// Starts with one table for the whole chunk. Then, among the tables that would suit single groups best, adds
// the one that saves most, as long as it saves more than it takes.
Tables choose_tables(std::span<const std::byte> exponents, TileShape shape, const StopRequest& stop) {
  std::vector<Histogram> histograms;
  histograms.reserve(shape.groups());
  std::array<std::uint64_t, 256> all{};
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    stop_if(stop);
    histograms.push_back(histogram_of(exponents.subspan(group * shape.group_places(), shape.group_places()),
                                      shape.group_places() - rows_in_group(shape, group) * shape.columns));
    std::transform(all.begin(), all.end(), histograms.back().begin(), all.begin(), std::plus<>());
  }
  std::vector<Table> candidates;
  const std::uint64_t count = std::min(kCandidates, shape.groups());
  for (std::uint64_t i = 0; i < count; ++i)
    candidates.push_back(table_of(histograms[i * shape.groups() / count]));

  Tables chosen{{table_of(all)}, std::vector<std::uint8_t>(histograms.size(), 0)};
  const auto saved_with = [&](const Table& table) {
    std::vector<std::uint64_t> bits(histograms.size());
    std::transform(histograms.begin(), histograms.end(), bits.begin(),
                   [&](const Histogram& histogram) { return bits_saved(histogram, table); });
    return bits;
  };
  std::vector<std::uint64_t> saved = saved_with(chosen.tables[0]);
  std::vector<std::vector<std::uint64_t>> with(candidates.size());
  std::transform(candidates.begin(), candidates.end(), with.begin(), saved_with);
  while (true) {
    std::size_t best = candidates.size();
    std::uint64_t most = 8 * kTableBytes;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      std::uint64_t more = 0;
      for (std::size_t g = 0; g < saved.size(); ++g) more += std::max(with[i][g], saved[g]) - saved[g];
      if (more > most) {
        most = more;
        best = i;
      }
    }
    if (best == candidates.size()) return chosen;
    for (std::size_t g = 0; g < saved.size(); ++g) {
      if (with[best][g] <= saved[g]) continue;
      saved[g] = with[best][g];
      chosen.of_group[g] = static_cast<std::uint8_t>(chosen.tables.size());
    }
    chosen.tables.push_back(candidates[best]);
  }
}

// Fills the padding of a group with elements of tier 1, code 0.
void fill_padding(std::span<std::byte> group, TileShape shape, std::uint64_t rows, std::byte exponent) {
  for (std::uint64_t block = 0; block < shape.blocks(); ++block) {
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const std::span<std::byte> line = group.subspan(block * kTilePlaces + r * kTileColumns, kTileColumns);
      const std::size_t columns = r < rows ? columns_in_block(shape, block) : 0;
      if (columns == kTileColumns) continue;
      for (std::size_t p = 0; p < kTileColumns; ++p) {
        if (column_of_place(p) >= columns) line[p] = exponent;
      }
    }
  }
}

void put_u32(std::uint64_t value, std::byte* p) {
  for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(value >> 8 * i);
}

// How the codes of a tier are laid out: in columns; a turn fills full columns of 64 places.
struct Layout {
  std::byte* (*code)(const std::byte*, std::size_t, const std::byte*, std::byte*, std::byte*);
  std::size_t columns, lines;  // in a turn: columns of codes, lines of bytes that they take
};

// Appends a list to `out`, and exponents outside the table to `rest`; moves both pointers on.
void append_list(const Layout& layout, std::span<const std::byte> list, const std::byte* table,
                 std::byte*& out, std::byte*& rest) {
  const std::size_t turn = layout.columns * kLine, full = list.size() / turn;
  rest = layout.code(list.data(), full, table, out, rest);
  out += full * layout.lines * kLine;
  list = list.subspan(full * turn);
  if (list.empty()) return;
  // The last columns are shorter: they are coded as if code 0 followed their end.
  const std::size_t m = (list.size() + layout.columns - 1) / layout.columns;
  std::array<std::byte, 8 * kLine> columns;
  std::array<std::byte, 3 * kLine> codes;
  columns.fill(table[0]);
  for (std::size_t s = 0; s * m < list.size(); ++s)
    std::memcpy(&columns[s * kLine], &list[s * m], std::min(m, list.size() - s * m));
  rest = layout.code(columns.data(), 1, table, codes.data(), rest);
  for (std::size_t line = 0; line < layout.lines; ++line, out += m) std::memcpy(out, &codes[line * kLine], m);
}

std::span<const std::byte> until(const std::vector<std::byte>& list, const std::byte* end) {
  return {list.data(), static_cast<std::size_t>(end - list.data())};
}

}  // namespace

Bytes native_encode_bytes(TileShape shape) {
  constexpr Bytes kOfAGroup = kEntryBytes + sizeof(Histogram) + (kCandidates + 1) * sizeof(std::uint64_t) + 1;
  const Bytes lists = 4 * (shape.group_places() + kLine);  // beside the chunk, which has room for two more
  return shape.places() + 2 * shape.group_places() + lists + shape.groups() * kOfAGroup +
         (kCandidates + 1) * kTableBytes + 2 * kLine;
}

std::vector<std::byte> encode_native(std::span<const std::byte> exponents, TileShape shape, Isa isa,
                                     const StopRequest& stop) {
  SLUICE_CHECK(exponents.size() == shape.places(),
               std::to_string(exponents.size()) + ", " + std::to_string(shape.places()));
  if (exponents.empty()) return {};
  const NativeEncodeKernels& kernels = native_encode_kernels(isa);
  const Layout two_bits{kernels.two_bits, 4, 1}, three_bits{kernels.three_bits, 8, 3};
  const Tables tables = choose_tables(exponents, shape, stop);
  const std::uint64_t tables_begin = kEntryBytes * shape.groups() + 8;
  const std::uint64_t tier1_begin = round_up(tables_begin + kTableBytes * tables.tables.size(), kLine);
  const std::size_t places = shape.group_places();
  // Leaves room for one group's lists, all of them literals, beyond the size that is worth keeping.
  std::vector<std::byte> out(tier1_begin + exponents.size() + 2 * places);
  for (std::size_t i = 0; i < tables.tables.size(); ++i)
    std::memcpy(&out[tables_begin + kTableBytes * i], tables.tables[i].data(), kTableBytes);
  std::byte* end = &out[tier1_begin + exponents.size() / 4];
  const auto at = [&] { return static_cast<std::uint64_t>(end - out.data()); };

  std::vector<std::byte> padded, list2(places + kLine), list3(places + kLine), literals(places + kLine);
  for (std::uint64_t group = 0; group < shape.groups(); ++group) {
    stop_if(stop);
    const Table& table = tables.tables[tables.of_group[group]];
    std::span<const std::byte> all = exponents.subspan(group * places, places);
    if (const std::uint64_t rows = rows_in_group(shape, group); rows * shape.columns < places) {
      padded.assign(all.begin(), all.end());
      fill_padding(padded, shape, rows, table[0]);
      all = padded;
    }
    std::byte *const entry = &out[kEntryBytes * group], *tier1 = &out[tier1_begin + group * (places / 4)];
    std::byte *end2 = list2.data(), *end3 = list3.data(), *end_of_literals = literals.data();
    const std::uint64_t lists = at();
    append_list(two_bits, all, &table[0], tier1, end2);
    append_list(two_bits, until(list2, end2), &table[kTier1], end, end3);
    append_list(three_bits, until(list3, end3), &table[kTier1 + kTier2], end, end_of_literals);
    const std::uint64_t codes3 = until(list3, end3).size();
    end = std::ranges::copy(until(literals, end_of_literals), end).out;
    if (at() >= exponents.size() || at() > std::numeric_limits<std::uint32_t>::max() || codes3 > kMaxCodes3)
      return {};
    put_u32(lists, entry);
    put_u32(until(list2, end2).size(), entry + 4);
    put_u32(codes3 | std::uint64_t{tables.of_group[group]} << 24, entry + 8);
  }
  put_u32(at(), &out[tables_begin - 8]);
  put_u32(tables.tables.size(), &out[tables_begin - 4]);
  out.resize(round_up(at(), kLine));
  if (out.size() >= exponents.size()) return {};
  return out;
}

const NativeEncodeKernels& native_encode_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kNativeEncodeAvx2;
    case Isa::kAvx512:
      return kNativeEncodeAvx512;
    case Isa::kAvx512Vbmi2:
    case Isa::kAvx512Bf16:
    case Isa::kAmx:
      return kNativeEncodeAvx512Vbmi2;
#endif
    default:
      return kNativeEncodeScalar;
  }
}

}  // namespace sluice::codec
