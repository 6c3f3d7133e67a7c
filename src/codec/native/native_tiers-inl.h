// Decoding of a group of codec `native`, written once over the lines of an instruction set.
//
// A file native_chunk_ISA.cc defines what is listed here, then includes this file. Everything lies in the
// unnamed namespace of that file, and nothing of the standard library with a body is used there: an inline
// function compiled with -mavx512f under a name shared with other files could be picked by the linker for a
// machine without AVX-512.
//
//   Line              64 bytes in registers
//     load(p), store(p, line)
//     stream(p, line)     past the caches, p on a cache line; streamed() before other threads may look
//   Mask              some of 64 places
//     first_places(n)   those below n, which may be negative
//     both(mask, mask)
//   Codes2(line)      a line of 2-bit codes, four a byte
//   Codes3(a, b, c)   three lines of 3-bit codes, eight a column
//   Table2(entries)   what 2-bit codes stand for: byte c is that of code c; byte 3 is 255
//   Table3(entries)   the same for 3-bit codes; byte 7 is 255
//     lookup<s>(table, codes)      of codes s of all columns
//     escapes<s>(codes, entries)   where these entries are 255
//     expand<s>(codes, entries, mask, next)
//                       these entries with the bytes from `next` on in the places of the mask, which is
//                       escapes<s>, or the first places of it. `next` goes beyond what was taken; up to 64
//                       bytes from it on may be read
//   words_of(rotated, sm, low, high)
//                       exponents (kRotated) with signs and mantissas: columns 0 to 31 and 32 to 63 as words
//   rotated(line)       exponents to kRotated
#pragma once

#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

// The form of exponents in lists and lines. 255, which no tier holds, is 255 in both forms.
enum class Form {
  kExponent,  // as they are
  // Rotated right by one bit, so that the lowest bit becomes the highest: as they lie in a word's two bytes.
  kRotated,
};

// Brings each byte of `exponents` into the form.
template <Form kForm, class Number>
[[gnu::always_inline]] inline Number formed(Number exponents) {
  if constexpr (kForm == Form::kExponent) return exponents;
  constexpr Number kOnes = static_cast<Number>(~Number{0}) / 255;  // 1 in each byte
  return static_cast<Number>((exponents >> 1 & 0x7f * kOnes) | (exponents & kOnes) << 7);
}

template <Form kForm>
Table2 table_of_tier(const std::byte* exponents, std::uint32_t) {
  std::uint32_t entries = 0xff;
  for (int i = 2; i >= 0; --i) entries = entries << 8 | static_cast<std::uint32_t>(exponents[i]);
  return Table2(formed<kForm>(entries));
}

template <Form kForm>
Table3 table_of_tier(const std::byte* exponents, std::uint64_t) {
  std::uint64_t entries = 0xff;
  for (int i = 6; i >= 0; --i) entries = entries << 8 | static_cast<std::uint64_t>(exponents[i]);
  return Table3(formed<kForm>(entries));
}

// f<0>() … f<n − 1>(), without a loop: s is an operand of instructions.
template <int kS, int kCount, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  if constexpr (kS < kCount) {
    f.template operator()<kS>();
    unrolled<kS + 1, kCount>(f);
  }
}

// Loads the line at p, of which `count` bytes belong to the list; the others are unspecified.
[[gnu::always_inline]] inline Line load_within(const std::byte* p, std::uint64_t count,
                                               const std::byte* end) {
  if (end - p >= 64) return load(p);
  alignas(64) std::byte line[64] = {};
  __builtin_memcpy(line, p, count);
  return load(line);
}

// Takes one block of a list: lines of m codes, s by s; the last block has n codes, perhaps fewer than it has
// places for.
template <int kLines, bool kFull, class Table, class Codes>
[[gnu::always_inline]] inline const std::byte* decode_block(const Table& table, const Codes& codes,
                                                            std::int64_t n, std::int64_t m,
                                                            const std::byte* next, std::byte* exponents) {
  unrolled<0, kLines>([&]<int kS>() __attribute__((always_inline)) {
    const Line entries = lookup<kS>(table, codes);
    Mask mask = escapes<kS>(codes, entries);
    if constexpr (!kFull) {
      const std::int64_t left = n - kS * m;
      mask = both(mask, first_places(left < m ? left : m));
    }
    store(exponents + kS * m, expand<kS>(codes, entries, mask, next));
  });
  return next;
}

// Both overloads return the end of what they took from `next` on.
template <Form kForm>
const std::byte* decode_tier3(const NativeGroup& group, const std::byte* next, std::byte* exponents) {
  const Table3 table = table_of_tier<kForm>(group.tiers + 6, std::uint64_t{});
  const std::byte* p = group.tier3;
  std::uint64_t left = group.codes3;
  for (; left >= 512; left -= 512, p += 192, exponents += 512) {
    next =
        decode_block<8, true>(table, Codes3(load(p), load(p + 64), load(p + 128)), 512, 64, next, exponents);
  }
  if (left == 0) return next;
  const std::uint64_t m = (left + 7) / 8;
  const Codes3 codes(load_within(p, m, group.chunk_end), load_within(p + m, m, group.chunk_end),
                     load_within(p + 2 * m, m, group.chunk_end));
  return decode_block<8, false>(table, codes, static_cast<std::int64_t>(left), static_cast<std::int64_t>(m),
                                next, exponents);
}

template <Form kForm>
const std::byte* decode_tier2(const NativeGroup& group, const std::byte* next, std::byte* exponents) {
  const Table2 table = table_of_tier<kForm>(group.tiers + 3, std::uint32_t{});
  const std::byte* p = group.tier2;
  std::uint64_t left = group.codes2;
  for (; left >= 256; left -= 256, p += 64, exponents += 256) {
    next = decode_block<4, true>(table, Codes2(load(p)), 256, 64, next, exponents);
  }
  if (left == 0) return next;
  const std::uint64_t m = (left + 3) / 4;
  return decode_block<4, false>(table, Codes2(load_within(p, m, group.chunk_end)),
                                static_cast<std::int64_t>(left), static_cast<std::int64_t>(m), next,
                                exponents);
}

// Decodes all lists of a group: its codes2 exponents of tier 2 and below, in order. Null if a count disagrees
// with the codes.
template <Form kForm>
const std::byte* decode_lists(const NativeGroup& group, std::byte* scratch) {
  const std::uint64_t room = native_room_bytes(group.blocks);
  std::byte* const literals = scratch + (-reinterpret_cast<std::uintptr_t>(scratch) & 63);
  std::byte *const tier3 = literals + room, *const tier2 = tier3 + room;
  for (std::uint32_t i = 0; i < group.literal_count; ++i)
    literals[i] = static_cast<std::byte>(formed<kForm>(static_cast<unsigned char>(group.literals[i])));
  if (decode_tier3<kForm>(group, literals, tier3) != literals + group.literal_count) return nullptr;
  if (decode_tier2<kForm>(group, tier3, tier2) != tier3 + group.codes3) return nullptr;
  return tier2;
}

// A row of a tile as a compile-time constant.
template <int kRow>
struct TileRow {
  constexpr operator std::uint64_t() const { return kRow; }
};

// The lines of a group, block after block, so that the caller can take lines of several groups in turn.
template <Form kForm>
class Lines {
 public:
  Lines(const NativeGroup& group, std::byte* scratch)
      : first_(decode_lists<kForm>(group, scratch)),
        next_(first_),
        end_(first_ == nullptr ? nullptr : first_ + group.codes2),
        codes_(group.tier1),
        table_(table_of_tier<kForm>(group.tiers, std::uint32_t{})) {}

  // False: a count of the lists is wrong; no block may be taken.
  bool started() const { return first_ != nullptr; }
  // False: a count is wrong; the blocks had no meaning.
  bool ended_well() const { return next_ == end_; }

  // Calls sink(block, TileRow, line of exponents in that form) for the next block, in the order of places.
  template <class Sink>
  [[gnu::always_inline]] void block(std::uint64_t block, const Sink& sink) {
    unrolled<0, 2>([&]<int kHalf>() __attribute__((always_inline)) {
      const Codes2 codes(load(codes_));
      codes_ += 64;
      unrolled<0, 4>([&]<int kS>() __attribute__((always_inline)) {
        const Line entries = lookup<kS>(table_, codes);
        sink(block, TileRow<4 * kHalf + kS>(),
             expand<kS>(codes, entries, escapes<kS>(codes, entries), next_));
      });
    });
  }

 private:
  const std::byte *first_, *next_, *end_, *codes_;
  Table2 table_;
};

// Visits all lines of a group. False if a count is wrong; the sink may then have seen meaningless lines.
template <Form kForm, class Sink>
[[gnu::always_inline]] inline bool for_each_line(const NativeGroup& group, std::byte* scratch,
                                                 const Sink& sink) {
  Lines<kForm> lines(group, scratch);
  if (!lines.started()) return false;
  for (std::uint64_t block = 0; block < group.blocks; ++block) lines.block(block, sink);
  return lines.ended_well();
}

inline bool decode(const NativeGroup& group, std::byte* scratch, std::byte* exponents) {
  return for_each_line<Form::kExponent>(
      group,
      scratch, [exponents](std::uint64_t block, std::uint64_t row, Line line) __attribute__((always_inline)) {
        store(exponents + block * kTilePlaces + row * kTileColumns, line);
      });
}

// Where merged lines go; leaves out rows and columns beyond the matrix.
template <Stores kStores>
struct Words {
  const std::byte* sign_mantissas;
  std::uint64_t rows, columns;
  std::byte* words;

  [[gnu::always_inline]] void operator()(std::uint64_t block, std::uint64_t row, Line rotated) const {
    if (row >= rows) return;
    Line low, high;
    words_of(rotated, load(sign_mantissas + block * kTilePlaces + row * kTileColumns), low, high);
    std::byte* const to = words + 2 * (row * columns + block * kTileColumns);
    const std::uint64_t left = columns - block * kTileColumns;
    if (left >= kTileColumns) {
      if constexpr (kStores == Stores::kStreaming) {
        stream(to, low);
        stream(to + 64, high);
      } else {
        store(to, low);
        store(to + 64, high);
      }
      return;
    }
    std::byte whole[2 * kTileColumns];
    store(whole, low);
    store(whole + 64, high);
    __builtin_memcpy(to, whole, 2 * left);
  }
};

// Calls f(sink) with the kind of stores that the target can take.
template <class F>
[[gnu::always_inline]] inline void with_words(const std::byte* sign_mantissas, std::uint64_t rows,
                                              std::uint64_t columns, std::byte* words, Stores stores,
                                              const F& f) {
  const bool on_lines = reinterpret_cast<std::uintptr_t>(words) % 64 == 0 && 2 * columns % 64 == 0;
  if (stores == Stores::kCached || !on_lines)
    return f(Words<Stores::kCached>{sign_mantissas, rows, columns, words});
  f(Words<Stores::kStreaming>{sign_mantissas, rows, columns, words});
  streamed();
}

inline bool merge(const NativeGroup& group, std::byte* scratch, const std::byte* sign_mantissas,
                  std::uint64_t rows, std::uint64_t columns, std::byte* words, Stores stores) {
  bool good = false;
  with_words(sign_mantissas, rows, columns, words, stores,
             [&](const auto& sink) { good = for_each_line<Form::kRotated>(group, scratch, sink); });
  return good;
}

inline void merge_raw(const std::byte* exponents, const std::byte* sign_mantissas, std::uint64_t blocks,
                      std::uint64_t rows, std::uint64_t columns, std::byte* words, Stores stores) {
  with_words(sign_mantissas, rows, columns, words, stores, [&](const auto& sink) {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      for (std::uint64_t row = 0; row < kTileRows; ++row)
        sink(block, row, rotated(load(exponents + block * kTilePlaces + row * kTileColumns)));
    }
  });
}

}  // namespace
}  // namespace sluice::codec
