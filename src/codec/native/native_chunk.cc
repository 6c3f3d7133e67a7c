#include "codec/native/native_chunk.h"

#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "codec/native/damaged_store.h"
#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

constexpr std::uint64_t kTableBytes = 13, kMaxTables = 256, kEntryBytes = 12, kLine = 64;
constexpr std::uint64_t kTier1BlockBytes = kTilePlaces / 4;

std::uint32_t u32(const std::byte* p) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(p[i]) << 8 * i;
  return value;
}

[[noreturn]] void fail(std::string_view what, const std::string& expected, const std::string& found) {
  throw Error(ErrorKind::kCorrupt, std::string("chunk of codec native: ").append(what))
      .expected(expected)
      .found(found)
      .fix(kDamagedStore);
}

void check_table(std::span<const std::byte> table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] == std::byte{255}) fail("exponent 255 in a tier", "0 to 254", "255");
    for (std::size_t j = 1; j < i; ++j) {
      if (table[i] == table[j] && table[i] != table[0])
        fail("an exponent stands in the tiers twice", "once",
             std::to_string(std::to_integer<unsigned>(table[i])));
    }
  }
}

void check_zeros(std::span<const std::byte> bytes, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) {
    if (bytes[i] != std::byte{0})
      fail("padding at byte " + std::to_string(i), "0", std::to_string(std::to_integer<unsigned>(bytes[i])));
  }
}

// Behind the directory: the end of the lists, then the number of tables, then the tables.
std::uint64_t tables_begin(std::uint64_t groups) { return kEntryBytes * groups + 8; }
std::uint64_t tier1_bytes(GroupRange range) { return kTier1BlockBytes * range.blocks * range.groups; }
std::uint64_t tier2_bytes(std::uint64_t codes) { return (codes + 3) / 4; }
std::uint64_t tier3_bytes(std::uint64_t codes) { return (codes + 7) / 8 * 3; }

}  // namespace

NativeChunk::NativeChunk(std::span<const std::byte> bytes, GroupRange range) : bytes_(bytes), range_(range) {
  SLUICE_CHECK(range.groups > 0 && range.blocks > 0,
               std::to_string(range.groups) + ", " + std::to_string(range.blocks));
  const auto too_short = [&] {
    fail("shorter than tier 1 of its groups",
         std::to_string(range.groups) + " groups of " + std::to_string(range.blocks) + " blocks",
         std::to_string(bytes.size()) + " bytes");
  };
  // First check without products that could overflow.
  if (range.groups > bytes.size() / kEntryBytes || range.blocks > bytes.size() / range.groups ||
      tables_begin(range.groups) > bytes.size()) {
    too_short();
  }
  const std::uint64_t first_table = tables_begin(range.groups), tables = u32(&bytes[first_table - 4]);
  if (tables == 0 || tables > kMaxTables)
    fail("number of tier tables", "1 to " + std::to_string(kMaxTables), std::to_string(tables));
  const std::uint64_t tables_end = first_table + kTableBytes * tables;
  tier1_begin_ = round_up(tables_end, kLine);
  if (tier1_begin_ + tier1_bytes(range) > bytes.size()) too_short();
  for (std::uint64_t i = 0; i < tables; ++i)
    check_table(bytes.subspan(first_table + kTableBytes * i, kTableBytes));
  check_zeros(bytes, tables_end, tier1_begin_);
  if (entry(0).lists != tier1_begin_ + tier1_bytes(range)) {
    fail("beginning of the lists", std::to_string(tier1_begin_ + tier1_bytes(range)),
         std::to_string(entry(0).lists));
  }
  for (std::uint64_t index = 0; index < range.groups; ++index) {
    const Entry e = entry(index);
    const auto fail_here = [index](std::string_view what, const std::string& expected,
                                   const std::string& found) {
      fail(std::string(what) + " of group " + std::to_string(index) + " of the chunk", expected, found);
    };
    const std::uint64_t places = range.blocks * kTilePlaces;
    if (e.table >= tables)
      fail_here("tier table", "below " + std::to_string(tables), std::to_string(e.table));
    if (e.codes2 > places || e.codes3 > e.codes2) {
      fail_here("codes", "no more in a tier than in the one before, of " + std::to_string(places),
                std::to_string(e.codes2) + ", then " + std::to_string(e.codes3));
    }
    const std::uint64_t literals = e.lists + tier2_bytes(e.codes2) + tier3_bytes(e.codes3);
    if (literals > lists_end(index) || lists_end(index) - literals > e.codes3) {
      fail_here("end of the lists", std::to_string(literals) + " to " + std::to_string(literals + e.codes3),
                std::to_string(lists_end(index)));
    }
  }
  const std::uint64_t end = lists_end(range.groups - 1);
  if (round_up(end, kLine) != bytes.size())
    fail("length", std::to_string(round_up(end, kLine)), std::to_string(bytes.size()));
  check_zeros(bytes, end, bytes.size());
}

NativeChunk::Entry NativeChunk::entry(std::uint64_t index) const {
  const std::byte* p = bytes_.data() + kEntryBytes * index;
  const std::uint32_t last = u32(p + 8);
  return {u32(p), u32(p + 4), last & 0xffffff, last >> 24};
}

// The next group's lists begin there; the entry behind the last group is the end of all lists.
std::uint64_t NativeChunk::lists_end(std::uint64_t index) const {
  return u32(bytes_.data() + kEntryBytes * (index + 1));
}

NativeGroup NativeChunk::group(std::uint64_t index) const {
  SLUICE_CHECK(index < range_.groups, std::to_string(index) + ", " + std::to_string(range_.groups));
  const Entry e = entry(index);
  const std::byte* first = bytes_.data();
  NativeGroup group;
  group.tiers = first + tables_begin(range_.groups) + kTableBytes * e.table;
  group.blocks = range_.blocks;
  group.tier1 = first + tier1_begin_ + kTier1BlockBytes * range_.blocks * index;
  group.tier2 = first + e.lists;
  group.tier3 = group.tier2 + tier2_bytes(e.codes2);
  group.literals = group.tier3 + tier3_bytes(e.codes3);
  group.codes2 = e.codes2;
  group.codes3 = e.codes3;
  group.literal_count = static_cast<std::uint32_t>(first + lists_end(index) - group.literals);
  group.chunk_end = first + bytes_.size();
  return group;
}

std::size_t native_scratch_bytes(std::uint64_t blocks) { return 3 * native_room_bytes(blocks) + 64; }

const NativeKernels& native_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kNativeAvx2;
    case Isa::kAvx512:
      return kNativeAvx512;
    case Isa::kAvx512Vbmi2:
    case Isa::kAvx512Bf16:
    case Isa::kAmx:
      return kNativeAvx512Vbmi2;
#elif defined(__aarch64__)
    case Isa::kNeon:
      return kNativeNeon;
#endif
    default:
      return kNativeScalar;
  }
}

}  // namespace sluice::codec
