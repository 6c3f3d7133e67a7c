#include "codec/exponents/plane_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/error.h"
#include "codec/exponents/bf16_split.h"

namespace sluice::codec {
namespace {

using Memory = std::vector<std::byte>;

// Words whose exponents compress, and their planes in the order of the codec.
struct Planes {
  Memory words, exponents, sign_mantissas;
  TileShape tiles;
};
Planes planes_of(std::string_view codec, TileShape shape, std::mt19937& random) {
  Planes p;
  const std::size_t count = shape.rows * shape.columns;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned word = (random() & 0x807f) | (120 + random() % 4) << 7;
    p.words.push_back(static_cast<std::byte>(word));
    p.words.push_back(static_cast<std::byte>(word >> 8));
  }
  p.tiles = codec == kNativeCodec ? shape : TileShape{};
  const std::size_t places = codec == kNativeCodec ? shape.places() : count;
  p.exponents.resize(places);
  p.sign_mantissas.resize(places);
  if (codec == kNativeCodec) {
    split_tiles(p.words, shape, p.exponents, p.sign_mantissas);
  } else {
    split_bf16(p.words, p.exponents, p.sign_mantissas);
  }
  return p;
}

EncodedChunk encode(std::string_view codec, const Planes& p) {
  if (codec != kNativeCodec) return make_exponent_codec(codec)->encode(p.exponents);
  return {ChunkKind::kCodec, encode_native(p.exponents, p.tiles)};
}

ErrorKind kind_of_error(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kInterrupted;  // no error was thrown
}

TEST(PlaneDecoder, GivesExponentsAndWordsInTheOrderOfElements) {
  std::mt19937 random(4);
  for (const std::string_view codec : {"zstd", "lz4", "native"}) {
    for (const TileShape shape : {TileShape{24, 128}, {13, 200}}) {
      const Planes p = planes_of(codec, shape, random);
      Memory plain(shape.rows * shape.columns), ignored(plain.size());
      split_bf16(p.words, plain, ignored);
      for (const Isa isa : available_isas()) {
        const PlaneDecoder decoder(codec, isa);
        for (const EncodedChunk& chunk : {encode(codec, p), EncodedChunk{ChunkKind::kRaw, p.exponents}}) {
          Memory exponents(plain.size()), words(p.words.size());
          decoder.exponents(chunk.kind, chunk.bytes, p.tiles, exponents);
          decoder.words(chunk.kind, chunk.bytes, p.sign_mantissas, p.tiles, words);
          EXPECT_EQ(exponents, plain) << codec << ' ' << isa_name(isa);
          EXPECT_EQ(words, p.words) << codec << ' ' << isa_name(isa);
        }
      }
    }
  }
}

TEST(PlaneDecoder, DamagedChunksAreErrors) {
  std::mt19937 random(5);
  const TileShape shape{24, 128};
  const Planes p = planes_of(kNativeCodec, shape, random);
  const PlaneDecoder decoder(kNativeCodec, best_isa());
  Memory words(p.words.size());
  const auto decode = [&](ChunkKind kind, const Memory& bytes) {
    const auto found = kind_of_error([&] { decoder.words(kind, bytes, p.sign_mantissas, p.tiles, words); });
    EXPECT_EQ(kind_of_error([&] { decoder.check(kind, bytes, p.tiles, words.size() / 2); }), found);
    return found;
  };
  Memory raw = p.exponents;
  EXPECT_EQ(decode(ChunkKind::kRaw, raw), ErrorKind::kInterrupted);
  raw.pop_back();
  EXPECT_EQ(decode(ChunkKind::kRaw, raw), ErrorKind::kCorrupt);
  Memory coded = encode(kNativeCodec, p).bytes;
  EXPECT_EQ(decode(ChunkKind::kCodec, coded), ErrorKind::kInterrupted);
  Memory cut(coded.begin(), coded.end() - 64);
  EXPECT_EQ(decode(ChunkKind::kCodec, cut), ErrorKind::kCorrupt);
  std::fill_n(coded.begin() + 64, 64, std::byte{0xff});  // tier 1: every place escapes, which no list expects
  EXPECT_EQ(decode(ChunkKind::kCodec, coded), ErrorKind::kCorrupt);
  EXPECT_EQ(kind_of_error([] { const PlaneDecoder never("brotli", best_isa()); }), ErrorKind::kUnsupported);
}

TEST(PlaneDecoder, KnowsTheNamesThatItTakes) {
  for (const char* name : {"none", "zstd", "lz4", "native"}) EXPECT_TRUE(is_codec(name)) << name;
  for (const char* name : {"", "Native", "brotli"}) EXPECT_FALSE(is_codec(name)) << name;
}

}  // namespace
}  // namespace sluice::codec
