#include "codec/native/native_chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/float16.h"
#include "codec/exponents/entropy.h"
#include "codec/native/native_encode_impl.h"

namespace sluice::codec {
namespace {

using Plane = std::vector<std::byte>;
using Words = std::vector<std::uint16_t>;
using Random = std::mt19937_64;

Plane bytes_of(const Words& words) {
  Plane bytes(2 * words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    bytes[2 * i] = static_cast<std::byte>(words[i]);
    bytes[2 * i + 1] = static_cast<std::byte>(words[i] >> 8);
  }
  return bytes;
}

// A second decoder, written only from docs/store-format.md, section 4.1: one place after the other, every
// code fetched bit by bit, nothing shared with the code under test. Returns the exponents of all groups in
// tile order, or nothing if a count is wrong.
struct PageDecoder {
  const Plane& chunk;
  std::size_t g, blocks;

  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(chunk.at(at)); }
  std::size_t u32(std::size_t at) const {
    return byte(at) + 256 * (byte(at + 1) + 256 * (byte(at + 2) + std::size_t{256} * byte(at + 3)));
  }
  bool bit(std::size_t at, unsigned b) const { return (byte(at) >> b & 1) != 0; }
  unsigned two_bits(std::size_t at, unsigned s) const { return bit(at, 2 * s) + 2u * bit(at, 2 * s + 1); }

  unsigned code_of_two(std::size_t list, std::size_t n, std::size_t k) const {
    const std::size_t turn = k / 256, in_turn = std::min<std::size_t>(256, n - 256 * turn),
                      m = (in_turn + 3) / 4;
    return two_bits(list + 64 * turn + k % 256 % m, static_cast<unsigned>(k % 256 / m));
  }
  unsigned code_of_three(std::size_t list, std::size_t n, std::size_t k) const {
    const std::size_t turn = k / 512, in_turn = std::min<std::size_t>(512, n - 512 * turn),
                      m = (in_turn + 7) / 8;
    const std::size_t a = list + 192 * turn + k % 512 % m, b = a + m, c = b + m;
    struct {
      std::size_t line;
      unsigned bit;
    } const places[8][3] = {{{a, 0}, {a, 1}, {a, 2}}, {{a, 3}, {a, 4}, {a, 5}}, {{b, 0}, {b, 1}, {b, 2}},
                            {{b, 3}, {b, 4}, {b, 5}}, {{c, 0}, {c, 1}, {c, 2}}, {{c, 3}, {c, 4}, {c, 5}},
                            {{a, 6}, {a, 7}, {c, 6}}, {{b, 6}, {b, 7}, {c, 7}}};
    const auto& place = places[k % 512 / m];
    return bit(place[0].line, place[0].bit) + 2u * bit(place[1].line, place[1].bit) +
           4u * bit(place[2].line, place[2].bit);
  }

  std::optional<Plane> decode() const {
    Plane out;
    const std::size_t tables = u32(12 * g + 4), tier1 = (12 * g + 8 + 13 * tables + 63) / 64 * 64;
    for (std::size_t group = 0; group < g; ++group) {
      const std::size_t entry = 12 * group;
      const std::size_t lists = u32(entry), n2 = u32(entry + 4), n3 = u32(entry + 8) % (1u << 24);
      const std::size_t end = u32(entry + 12), table = 12 * g + 8 + 13 * byte(entry + 11);
      const std::size_t tier3 = lists + (n2 + 3) / 4, literals = tier3 + 3 * ((n3 + 7) / 8);
      std::size_t k2 = 0, k3 = 0, literal = literals;
      for (std::size_t place = 0; place < 512 * blocks; ++place) {
        const std::size_t block = place / 512, line = place % 512 / 256, s = place % 256 / 64, j = place % 64;
        unsigned code =
            two_bits(tier1 + ((group * blocks + block) * 2 + line) * 64 + j, static_cast<unsigned>(s));
        if (code < 3) {
          out.push_back(chunk.at(table + code));
          continue;
        }
        if (k2 == n2) return std::nullopt;
        code = code_of_two(lists, n2, k2++);
        if (code < 3) {
          out.push_back(chunk.at(table + 3 + code));
          continue;
        }
        if (k3 == n3) return std::nullopt;
        code = code_of_three(tier3, n3, k3++);
        if (code < 7) {
          out.push_back(chunk.at(table + 6 + code));
          continue;
        }
        if (literal == end) return std::nullopt;
        out.push_back(chunk.at(literal++));
      }
      if (k2 != n2 || k3 != n3 || literal != end) return std::nullopt;
    }
    return out;
  }
};

std::span<const std::byte> part(const Plane& plane, std::size_t first, std::size_t size) {
  return std::span<const std::byte>(plane).subspan(first, size);
}

// Memory of exactly this size, so that the address sanitizer sees a byte too far.
struct Exact {
  explicit Exact(std::size_t size) : data(new std::byte[size]), size(size) {
    std::memset(data.get(), 0xa5, size);
  }
  explicit Exact(std::span<const std::byte> bytes) : Exact(bytes.size()) {
    if (!bytes.empty()) std::memcpy(data.get(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> span() const { return {data.get(), size}; }
  std::unique_ptr<std::byte[]> data;
  std::size_t size;
};

GroupRange range_of(TileShape shape) { return {shape.groups(), shape.blocks()}; }

// Decodes all groups of a chunk with one instruction set; empty if a count is wrong.
std::optional<Plane> decoded(const NativeChunk& chunk, Isa isa) {
  const std::size_t group_bytes = chunk.range().blocks * kTilePlaces;
  Plane out;
  const Exact scratch(native_scratch_bytes(chunk.range().blocks)), exponents(group_bytes);
  for (std::uint64_t index = 0; index < chunk.range().groups; ++index) {
    if (!native_kernels(isa).decode(chunk.group(index), scratch.data.get(), exponents.data.get())) return {};
    out.insert(out.end(), exponents.data.get(), exponents.data.get() + group_bytes);
  }
  return out;
}

std::uint64_t rows_of_group(TileShape shape, std::uint64_t group) {
  return std::min<std::uint64_t>(kTileRows, shape.rows - group * kTileRows);
}

// Codes a matrix and decodes it with every instruction set, coded and raw. Returns whether the chunk shrank.
bool check_round_trip(const Words& matrix, TileShape shape) {
  const Plane words = bytes_of(matrix);
  Plane e(shape.places()), sm(shape.places());
  split_tiles(words, shape, e, sm);
  const std::vector<std::byte> encoded = encode_native(e, shape, Isa::kScalar);
  for (const Isa isa : available_isas())
    EXPECT_TRUE(encode_native(e, shape, isa) == encoded) << isa_name(isa);
  const std::size_t group_bytes = shape.group_places(), row_bytes = 2 * shape.columns;
  const Exact scratch(native_scratch_bytes(shape.blocks()));
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(isa_name(isa));
    for (std::uint64_t group = 0; group < shape.groups(); ++group) {
      const std::uint64_t rows = rows_of_group(shape, group);
      const Exact group_e(part(e, group * group_bytes, group_bytes)),
          group_sm(part(sm, group * group_bytes, group_bytes)), out(rows * row_bytes);
      native_kernels(isa).merge_raw(group_e.data.get(), group_sm.data.get(), shape.blocks(), rows,
                                    shape.columns, out.data.get(), Stores::kCached);
      EXPECT_EQ(std::memcmp(out.data.get(), &words[group * kTileRows * row_bytes], out.size), 0) << group;
    }
  }
  if (encoded.empty()) return false;
  EXPECT_LT(encoded.size(), e.size());
  EXPECT_EQ(encoded.size() % 64, 0u);

  const std::optional<Plane> page = PageDecoder{encoded, shape.groups(), shape.blocks()}.decode();
  EXPECT_TRUE(page.has_value());
  if (!page) return true;
  for (std::size_t place = 0; place < e.size(); ++place) {  // everything but padding
    const std::uint64_t row = place / group_bytes * kTileRows + place / kTileColumns % kTileRows;
    const std::uint64_t column =
        place % group_bytes / kTilePlaces * kTileColumns + column_of_place(place % kTileColumns);
    const bool padding = row >= shape.rows || column >= shape.columns;
    const std::uint64_t directory = 12 * shape.groups(), group = place / group_bytes;
    const std::size_t table = directory + 8 + 13 * std::to_integer<std::size_t>(encoded[12 * group + 11]);
    EXPECT_EQ((*page)[place], padding ? encoded[table] : e[place]) << place;
    if (::testing::Test::HasFailure()) return true;
  }
  const Exact bytes(encoded);
  const NativeChunk chunk(bytes.span(), range_of(shape));
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(isa_name(isa));
    EXPECT_TRUE(decoded(chunk, isa) == page);
    for (std::uint64_t group = 0; group < shape.groups(); ++group) {
      const std::uint64_t rows = rows_of_group(shape, group);
      const Exact group_sm(part(sm, group * group_bytes, group_bytes)), out(rows * row_bytes);
      EXPECT_TRUE(native_kernels(isa).merge(chunk.group(group), scratch.data.get(), group_sm.data.get(), rows,
                                            shape.columns, out.data.get(), Stores::kCached));
      EXPECT_EQ(std::memcmp(out.data.get(), &words[group * kTileRows * row_bytes], out.size), 0) << group;
    }
  }
  return true;
}

// Words whose exponents come from `exponent`, with any sign and mantissa.
Words words_with(TileShape shape, Random& random, const std::function<unsigned(std::size_t)>& exponent) {
  Words words(shape.rows * shape.columns);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto rest = static_cast<unsigned>(random());
    words[i] = static_cast<std::uint16_t>((rest & 0x80) << 8 | exponent(i) << 7 | (rest & 0x7f));
  }
  return words;
}

Words gaussian(TileShape shape, Random& random) {
  std::normal_distribution<float> normal;
  Words words(shape.rows * shape.columns);
  for (std::uint16_t& w : words) w = float_to_bf16(0.02f * normal(random));
  return words;
}

struct Distribution {
  const char* name;
  std::function<Words(TileShape, Random&)> make;
};

const Distribution kDistributions[] = {
    {"gaussian", gaussian},
    {"all equal", [](TileShape s, Random& r) { return words_with(s, r, [](std::size_t) { return 120u; }); }},
    {"every exponent",
     [](TileShape s, Random& r) {
       return words_with(s, r, [](std::size_t i) { return static_cast<unsigned>(i % 256); });
     }},
    {"only 255", [](TileShape s, Random& r) { return words_with(s, r, [](std::size_t) { return 255u; }); }},
    {"0 and 255",
     [](TileShape s, Random& r) {
       return words_with(s, r, [](std::size_t i) { return i % 3 ? 0u : 255u; });
     }},
    {"13 alike",
     [](TileShape s, Random& r) {
       return words_with(s, r, [&](std::size_t) { return static_cast<unsigned>(100 + r() % 13); });
     }},
    {"20 alike",
     [](TileShape s, Random& r) {
       return words_with(s, r, [&](std::size_t) { return static_cast<unsigned>(240 + r() % 16); });
     }},
    {"nothing of tier 1 beyond the first rows",
     [](TileShape s, Random& r) {
       return words_with(s, r, [&, s](std::size_t i) {
         return static_cast<unsigned>(i * 2 < s.rows * s.columns + 64 ? 1 + i % 3 : 20 + r() % 4);
       });
     }},
};

struct OnLines {  // memory of exactly this size that begins on a cache line
  explicit OnLines(std::size_t size) : data(static_cast<std::byte*>(std::aligned_alloc(64, size))) {}
  ~OnLines() { std::free(data); }
  OnLines(const OnLines&) = delete;
  OnLines& operator=(const OnLines&) = delete;
  std::byte* data;
};

class NativeChunkTest : public ::testing::Test {
 protected:
  const std::uint64_t seed_ = std::random_device{}();
  Random random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

TEST_F(NativeChunkTest, AllWordsComeBack) {
  Words words(65'536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  check_round_trip(words, {64, 1024});
  check_round_trip(words, {1024, 64});
  check_round_trip(words, {1, 65'536});
  // Mostly one exponent, so that the chunk is coded and not kept raw.
  Words coded(8 * 65'536, 0x3c00);
  for (std::size_t i = 0; i < words.size(); ++i) coded[8 * i + i / 8 % 8] = static_cast<std::uint16_t>(i);
  EXPECT_TRUE(check_round_trip(coded, {512, 1024}));
}

TEST_F(NativeChunkTest, AnyShapeAndDistributionComesBack) {
  for (const Distribution& d : kDistributions) {
    SCOPED_TRACE(d.name);
    for (int trial = 0; trial < 12; ++trial) {
      const TileShape shape{1 + random_() % 40, 1 + random_() % 700};
      SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.columns));
      check_round_trip(d.make(shape, random_), shape);
      if (HasFailure()) return;
    }
  }
}

TEST_F(NativeChunkTest, WideMatricesComeBack) {
  const TileShape shape{8, 14'336};
  for (const Distribution& d : kDistributions) {
    SCOPED_TRACE(d.name);
    check_round_trip(d.make(shape, random_), shape);
  }
}

TEST_F(NativeChunkTest, StreamingStoresGiveTheSameWords) {
  for (const TileShape shape : {TileShape{8, 64}, TileShape{5, 96}, TileShape{8, 1000}, TileShape{3, 2048}}) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.columns));
    const Plane words = bytes_of(gaussian(shape, random_));
    Plane e(shape.places()), sm(shape.places());
    split_tiles(words, shape, e, sm);
    const std::vector<std::byte> encoded = encode_native(e, shape);
    ASSERT_FALSE(encoded.empty());
    const NativeChunk chunk(encoded, range_of(shape));
    const Exact scratch(native_scratch_bytes(shape.blocks()));
    const OnLines out(round_up(words.size(), 64));
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(isa_name(isa));
      const NativeKernels& kernels = native_kernels(isa);
      std::memset(out.data, 0xa5, words.size());
      EXPECT_TRUE(kernels.merge(chunk.group(0), scratch.data.get(), sm.data(), shape.rows, shape.columns,
                                out.data, Stores::kStreaming));
      EXPECT_EQ(std::memcmp(out.data, words.data(), words.size()), 0);
      std::memset(out.data, 0xa5, words.size());
      kernels.merge_raw(e.data(), sm.data(), shape.blocks(), shape.rows, shape.columns, out.data,
                        Stores::kStreaming);
      EXPECT_EQ(std::memcmp(out.data, words.data(), words.size()), 0);
    }
  }
}

// Every length of a list that is not a whole number of lines, and both neighbours of one that is.
TEST_F(NativeChunkTest, AnyNumberOfCodesComesBack) {
  const TileShape shape{8, 256};  // 2048 places
  for (std::size_t escapes = 0; escapes <= 1100; escapes += escapes < 40 ? 1 : 1 + random_() % 24) {
    SCOPED_TRACE(std::to_string(escapes));
    for (const unsigned others : {3u, 10u, 40u}) {  // in tier 2; in tiers 2 and 3; and literals
      Words words = words_with(shape, random_, [](std::size_t i) { return static_cast<unsigned>(i % 3); });
      for (std::size_t i = 0; i < escapes; ++i) {
        const std::size_t at = (i * 1021 + seed_) % words.size();  // a prime: never the same place twice
        words[at] = static_cast<std::uint16_t>((3 + random_() % others) << 7);
      }
      check_round_trip(words, shape);
      if (HasFailure()) return;
    }
  }
}

TEST_F(NativeChunkTest, GaussianWeightsCostLittleMoreThanTheirEntropy) {
  // Rows differ, as they do in trained models. One matrix takes 0.120 bits more with a deviation of 0.003
  // between matrices, so that one in two hundred is above the bound; the mean of eight is not.
  const TileShape shape{512, 2048};
  constexpr int kMatrices = 8;
  std::normal_distribution<float> normal;
  double more = 0;  // bits an exponent above the entropy
  for (int i = 0; i < kMatrices; ++i) {
    Words matrix(shape.rows * shape.columns);
    for (std::size_t row = 0; row < shape.rows; ++row) {
      const float sigma = 0.02f * std::exp(0.25f * normal(random_));
      for (std::size_t c = 0; c < shape.columns; ++c)
        matrix[row * shape.columns + c] = float_to_bf16(sigma * normal(random_));
    }
    Plane e(shape.places()), sm(shape.places());
    split_tiles(bytes_of(matrix), shape, e, sm);
    ExponentHistogram histogram;
    histogram.add_exponents(e);
    const double bits =
        8.0 * static_cast<double>(encode_native(e, shape).size()) / static_cast<double>(e.size());
    EXPECT_GT(bits, histogram.entropy_bits());
    more += (bits - histogram.entropy_bits()) / kMatrices;
  }
  EXPECT_LT(more, 0.008 * 16);
}

// Groups of three kinds, each with its own exponents: each kind gets a table beside the chunk's table, and
// tier 2 stays empty.
TEST_F(NativeChunkTest, GroupsThatDifferHaveTablesOfTheirOwn) {
  const TileShape shape{15 * 8, 256};
  const Words words = words_with(shape, random_, [&](std::size_t i) {
    return static_cast<unsigned>(20 * (i / (8 * shape.columns) % 3) + i % 3);
  });
  EXPECT_TRUE(check_round_trip(words, shape));
  Plane e(shape.places()), sm(shape.places());
  split_tiles(bytes_of(words), shape, e, sm);
  const Plane chunk = encode_native(e, shape);
  EXPECT_EQ(chunk.size(), round_up(12 * 15 + 8 + 4 * 13, 64) + e.size() / 4);
  // Groups of one kind get one table.
  for (std::byte& b : e) b = static_cast<std::byte>(std::to_integer<unsigned>(b) % 20);
  EXPECT_EQ(encode_native(e, shape).size(), round_up(12 * 15 + 8 + 13, 64) + e.size() / 4);
}

TEST_F(NativeChunkTest, WhatDoesNotShrinkIsNotCoded) {
  const TileShape shape{8, 64};
  Plane e(shape.places());
  for (std::byte& b : e) b = static_cast<std::byte>(random_());
  EXPECT_TRUE(encode_native(e, shape).empty());
  EXPECT_TRUE(encode_native({}, {0, 64}).empty());
}

TEST_F(NativeChunkTest, EncodingAsksWhetherToStopAtEveryGroup) {
  const TileShape shape{8 * 20, 128};
  Plane e(shape.places()), sm(shape.places());
  split_tiles(bytes_of(gaussian(shape, random_)), shape, e, sm);
  std::size_t asked = 0;
  encode_native(e, shape, best_isa(), [&] {
    ++asked;
    return false;
  });
  EXPECT_GE(asked, 2 * shape.groups());
  for (const std::size_t stop_at : {std::size_t{1}, shape.groups(), asked}) {
    std::size_t calls = 0;
    EXPECT_THROW(encode_native(e, shape, best_isa(), [&] { return ++calls == stop_at; }), Error);
    EXPECT_EQ(calls, stop_at);
  }
}

// The example of docs/store-format.md, section 4.1.
TEST_F(NativeChunkTest, TheExampleOfThePage) {
  const TileShape shape{1, 24};
  Words words(24);
  const unsigned exponents[24] = {126, 126, 126, 125, 125, 124, 124, 123, 123, 122, 122, 121,
                                  120, 119, 118, 117, 116, 115, 114, 113, 255, 126, 125, 126};
  for (std::size_t i = 0; i < 24; ++i) words[i] = static_cast<std::uint16_t>(exponents[i] << 7);
  EXPECT_TRUE(check_round_trip(words, shape));
  Plane e(shape.places()), sm(shape.places());
  split_tiles(bytes_of(words), shape, e, sm);
  const std::vector<std::byte> chunk = encode_native(e, shape);
  std::vector<std::byte> expected(256);
  const auto put = [&](std::size_t at, std::initializer_list<unsigned> bytes) {
    for (const unsigned b : bytes) expected[at++] = static_cast<std::byte>(b);
  };
  put(0x00, {0xc0, 0, 0, 0, 0x0e, 0, 0, 0, 0x09, 0, 0, 0});
  put(0x0c, {0xcc, 0, 0, 0, 0x01, 0, 0, 0});
  put(0x14, {0x7e, 0x7d, 0x7a});
  put(0x17, {0x7b, 0x7c, 0x71});
  put(0x1a, {0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78});
  put(0x40, {0, 0, 0, 1, 1, 3, 3, 3});
  put(0x50, {3, 2, 2, 3, 3, 3, 3, 3});
  put(0x60, {3, 3, 3, 3, 3, 0, 1, 0});
  put(0xc0, {0xbd, 0xfd, 0x3c, 0x3c});
  put(0xc4, {0x2f, 0x26, 0x0b, 0x02, 0x07, 0x00});
  put(0xca, {0x79, 0xff});
  EXPECT_EQ(chunk, expected);
}

// Decodes a hostile chunk from exactly its bytes in memory. Either an error, or every instruction set agrees.
void decode_hostile(std::span<const std::byte> bytes, GroupRange range) {
  const Exact exact(bytes);
  std::optional<NativeChunk> chunk;
  try {
    chunk.emplace(exact.span(), range);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    EXPECT_NE(std::string_view(error.what()).find("sluice verify"), std::string_view::npos) << error.what();
    return;
  }
  const std::optional<Plane> expected =
      PageDecoder{Plane(bytes.begin(), bytes.end()), range.groups, range.blocks}.decode();
  const std::size_t group_bytes = range.blocks * kTilePlaces;
  const Exact scratch(native_scratch_bytes(range.blocks)), sm(group_bytes),
      words(2 * group_bytes - 2 * 8 * 63);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(isa_name(isa));
    EXPECT_TRUE(decoded(*chunk, isa) == expected);
    for (std::uint64_t index = 0; index < range.groups; ++index) {
      native_kernels(isa).merge(chunk->group(index), scratch.data.get(), sm.data.get(), kTileRows,
                                range.blocks * kTileColumns - 63, words.data.get(), Stores::kStreaming);
    }
  }
}

std::vector<std::byte> encoded(const Words& words, TileShape shape) {
  Plane e(shape.places()), sm(shape.places());
  split_tiles(bytes_of(words), shape, e, sm);
  return encode_native(e, shape);
}

TEST_F(NativeChunkTest, FlippedBytesAreFoundOrDecodeToSomething) {
  for (int trial = 0; trial < 600 && !HasFailure(); ++trial) {
    const TileShape shape{1 + random_() % 20, 1 + random_() % 300};
    std::vector<std::byte> bytes =
        encoded(kDistributions[random_() % std::size(kDistributions)].make(shape, random_), shape);
    if (bytes.empty()) continue;
    for (std::uint64_t flips = 1 + random_() % 4; flips > 0; --flips) {
      // Half of the changes hit the sizes.
      const std::size_t at =
          random_() %
          (flips % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 12 * shape.groups() + 8 + 13));
      bytes[at] ^= static_cast<std::byte>(1u << random_() % 8);
    }
    decode_hostile(bytes, range_of(shape));
  }
}

TEST_F(NativeChunkTest, CutChunksAreErrors) {
  const TileShape shape{20, 300};
  const std::vector<std::byte> bytes = encoded(gaussian(shape, random_), shape);
  ASSERT_FALSE(bytes.empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Exact cut(part(bytes, 0, size));
    EXPECT_THROW(NativeChunk(cut.span(), range_of(shape)), Error) << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.resize(bytes.size() + 64);
  EXPECT_THROW(NativeChunk(longer, range_of(shape)), Error);
  for (const GroupRange wrong :
       {GroupRange{4, 5}, GroupRange{2, 5}, GroupRange{3, 4}, GroupRange{3, 6}, GroupRange{~0ull, 1},
        GroupRange{1, ~0ull}, GroupRange{~0ull / 12, ~0ull / 128}, GroupRange{1ull << 32, 1ull << 32}}) {
    EXPECT_THROW(NativeChunk(bytes, wrong), Error) << wrong.groups << ", " << wrong.blocks;
  }
}

TEST_F(NativeChunkTest, RandomBytesAreErrorsOrDecodeToSomething) {
  for (int trial = 0; trial < 300 && !HasFailure(); ++trial) {
    const GroupRange range{1 + random_() % 3, 1 + random_() % 5};
    // Random tier 1 and lists behind a valid directory.
    const std::size_t tier1 = (12 * range.groups + 34 + 63) / 64 * 64;
    std::vector<std::byte> bytes(tier1 + 128 * range.groups * range.blocks);
    for (std::size_t i = tier1; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random_());
    const auto put = [&](std::size_t at, std::size_t value) {
      for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
    };
    put(12 * range.groups + 4, 2);
    for (std::size_t i = 0; i < 26; ++i)
      bytes[12 * range.groups + 8 + i] = static_cast<std::byte>(100 + i % 13 + i / 13 * 3);
    std::fill_n(&bytes[12 * range.groups + 34], (64 - (12 * range.groups + 34) % 64) % 64, std::byte{0});
    for (std::size_t group = 0; group < range.groups; ++group) {
      const std::uint64_t n2 = random_() % (range.blocks * kTilePlaces + 1), n3 = random_() % (n2 + 1);
      put(12 * group, bytes.size());
      put(12 * group + 4, n2);
      put(12 * group + 8, n3 | random_() % 2 << 24);
      for (std::size_t i = (n2 + 3) / 4 + (n3 + 7) / 8 * 3 + random_() % (n3 + 1); i > 0; --i)
        bytes.push_back(static_cast<std::byte>(random_()));
    }
    put(12 * range.groups, bytes.size());
    bytes.resize((bytes.size() + 63) / 64 * 64);
    EXPECT_NO_THROW(NativeChunk(bytes, range));
    decode_hostile(bytes, range);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    decode_hostile(bytes, range);
  }
}

// A count that disagrees with the codes of the tier before, with lists that fit the count.
TEST_F(NativeChunkTest, WrongCountsAreFoundByEveryInstructionSet) {
  const TileShape shape{8, 128};
  Words words = words_with(shape, random_, [](std::size_t i) { return static_cast<unsigned>(i % 3); });
  for (std::size_t i = 0; i < 40; ++i) words[i * 17] = static_cast<std::uint16_t>((3 + i % 20) << 7);
  const std::vector<std::byte> good = encoded(words, shape);
  ASSERT_FALSE(good.empty());
  ASSERT_EQ(decoded(NativeChunk(good, range_of(shape)), Isa::kScalar), (PageDecoder{good, 1, 2}.decode()));
  // Changes the 40 codes of tier 2 by one up or down, which stays within the same byte or changes the
  // number of literals by one.
  for (const std::size_t at : {4, 8, 12}) {
    for (const int change : {-1, 1}) {
      std::vector<std::byte> bad = good;
      bad[at] = static_cast<std::byte>(std::to_integer<int>(bad[at]) + change);
      SCOPED_TRACE(std::to_string(at) + (change > 0 ? " more" : " less"));
      std::optional<NativeChunk> chunk;
      try {
        chunk.emplace(bad, range_of(shape));
      } catch (const Error&) {
        continue;
      }
      for (const Isa isa : available_isas()) EXPECT_FALSE(decoded(*chunk, isa)) << isa_name(isa);
    }
  }
}

TEST_F(NativeChunkTest, TablesAndPaddingThatTheWriterNeverMakesAreErrors) {
  const TileShape shape{1, 24};
  const std::vector<std::byte> good =
      encoded(words_with(shape, random_, [](std::size_t i) { return static_cast<unsigned>(i % 2); }), shape);
  ASSERT_FALSE(good.empty());
  const auto expect_error = [&](std::size_t at, unsigned value, const std::string& what,
                                std::size_t also = 63, unsigned also_value = 0) {
    std::vector<std::byte> bad = good;
    bad.at(also) = static_cast<std::byte>(also_value);
    bad.at(at) = static_cast<std::byte>(value);
    try {
      NativeChunk(bad, range_of(shape));
      ADD_FAILURE() << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  expect_error(20 + 2, 255, "255 in a tier");
  expect_error(20 + 12, 1, "twice");
  expect_error(16, 0, "number of tier tables");
  expect_error(17, 1, "number of tier tables");  // 257
  expect_error(16, 2, "255 in a tier", 33, 255);
  expect_error(11, 1, "tier table of group 0");
  expect_error(33, 1, "padding at byte 33");
  expect_error(63, 1, "padding at byte 63");
  expect_error(0, 0, "beginning of the lists");
  expect_error(12, 1, "end of the lists");
  expect_error(6, 1, "codes of group 0");
}

TEST(NativeKernelsDispatch, ForcedSetsHaveKernelsOfTheirOwn) {
  std::vector<Isa> isas = available_isas();
  std::erase_if(isas,
                [](Isa isa) { return isa == Isa::kAvx512Bf16 || isa == Isa::kAmx; });  // same as kAvx512Vbmi2
  for (const Isa a : isas) {
    for (const Isa b : isas) {
      if (a != b) {
        EXPECT_NE(native_kernels(a).decode, native_kernels(b).decode) << isa_name(a) << isa_name(b);
        EXPECT_TRUE(native_encode_kernels(a).two_bits != native_encode_kernels(b).two_bits ||
                    b == Isa::kNeon || a == Isa::kNeon);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::codec
