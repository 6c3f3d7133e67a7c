#include "codec/exponents/exponent_codec.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::codec {
namespace {

using Chunk = std::vector<std::byte>;

Chunk random_chunk(std::mt19937_64& random, std::size_t size) {
  Chunk chunk(size);
  for (std::byte& b : chunk) b = static_cast<std::byte>(random());
  return chunk;
}

// Exponents of weights with the given standard deviation.
Chunk exponent_chunk(std::mt19937_64& random, std::size_t size) {
  std::normal_distribution<float> weights(0.0f, 0.02f);
  Chunk chunk(size);
  for (std::byte& b : chunk)
    b = static_cast<std::byte>(std::bit_cast<std::uint32_t>(weights(random)) >> 23 & 0xff);
  return chunk;
}

std::vector<Chunk> corpus(std::mt19937_64& random) {
  std::vector<Chunk> chunks;
  for (std::size_t size = 0; size <= 40; ++size) chunks.push_back(exponent_chunk(random, size));
  for (const std::size_t size : {1000u, 4096u, 65'537u, 300'000u}) {
    chunks.push_back(exponent_chunk(random, size));
    chunks.push_back(random_chunk(random, size));
    chunks.push_back(Chunk(size, std::byte{0x7f}));
    Chunk periodic(size);
    for (std::size_t i = 0; i < size; ++i) periodic[i] = static_cast<std::byte>(i % 251);
    chunks.push_back(periodic);
  }
  return chunks;
}

class ExponentCodecTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { RecordProperty("seed", static_cast<int>(seed_)); }
  void TearDown() override {
    if (HasFailure()) std::printf("seed %u\n", seed_);
  }
  const unsigned seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  const std::unique_ptr<const ExponentCodec> codec_ = make_exponent_codec(GetParam());

  void expect_corrupt(ChunkKind kind, std::span<const std::byte> bytes, std::size_t raw_size,
                      const char* what) {
    Chunk raw(raw_size);  // exact allocation: the address sanitizer sees an overrun
    try {
      codec_->decode(kind, bytes, raw);
      ADD_FAILURE() << what << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kCorrupt) << what << ": " << e.what();
    }
  }
};

TEST_P(ExponentCodecTest, IsMadeByItsNameAtItsDefaultLevel) {
  EXPECT_EQ(codec_->name(), GetParam());
  for (const ExponentCodecEntry& entry : exponent_codecs()) {
    if (entry.name == GetParam()) {
      EXPECT_EQ(codec_->level(), entry.default_level);
    }
  }
}

TEST_P(ExponentCodecTest, RoundTripsAndNeverGrows) {
  for (const Chunk& raw : corpus(random_)) {
    const EncodedChunk encoded = codec_->encode(raw);
    EXPECT_LE(encoded.bytes.size(), raw.size());
    if (encoded.kind == ChunkKind::kCodec) {
      EXPECT_LT(encoded.bytes.size(), raw.size());
    } else {
      EXPECT_EQ(encoded.bytes, raw);
    }
    Chunk back(raw.size(), std::byte{0xee});
    codec_->decode(encoded.kind, encoded.bytes, back);
    EXPECT_TRUE(back == raw) << raw.size();
  }
}

TEST_P(ExponentCodecTest, RandomBytesAreStoredRaw) {
  EXPECT_EQ(codec_->encode(random_chunk(random_, 50'000)).kind, ChunkKind::kRaw);
  EXPECT_EQ(codec_->encode({}).kind, ChunkKind::kRaw);
}

TEST_P(ExponentCodecTest, EncodingIsDeterministicAndIndependentOfWhatCameBefore) {
  const Chunk chunk = exponent_chunk(random_, 100'000);
  const EncodedChunk first = codec_->encode(chunk);
  codec_->encode(random_chunk(random_, 70'000));
  codec_->encode(Chunk(200'000, std::byte{1}));
  const EncodedChunk again = codec_->encode(chunk);
  const EncodedChunk fresh = make_exponent_codec(GetParam())->encode(chunk);
  EXPECT_TRUE(first.bytes == again.bytes && first.kind == again.kind);
  EXPECT_TRUE(first.bytes == fresh.bytes);
}

TEST_P(ExponentCodecTest, RawChunksOfAnotherSizeAreCorruption) {
  const Chunk bytes(100);
  expect_corrupt(ChunkKind::kRaw, bytes, 99, "too long");
  expect_corrupt(ChunkKind::kRaw, bytes, 101, "too short");
  expect_corrupt(ChunkKind::kRaw, bytes, 0, "not empty");
  expect_corrupt(static_cast<ChunkKind>(2), bytes, 100, "unknown kind");
}

TEST_P(ExponentCodecTest, DamagedChunksAreCorruptionAndNeverOverrun) {
  const Chunk raw = exponent_chunk(random_, 20'000);
  const EncodedChunk encoded = codec_->encode(raw);
  if (encoded.kind == ChunkKind::kRaw) {
    expect_corrupt(ChunkKind::kCodec, std::span(encoded.bytes).first(100), raw.size(),
                   "compressed, of codec none");
    return;
  }
  const std::span<const std::byte> bytes(encoded.bytes);
  expect_corrupt(ChunkKind::kCodec, bytes, raw.size() - 1, "raw size one less");
  expect_corrupt(ChunkKind::kCodec, bytes, raw.size() + 1, "raw size one more");
  expect_corrupt(ChunkKind::kCodec, bytes, raw.size() * 2, "raw size doubled");
  expect_corrupt(ChunkKind::kCodec, {}, raw.size(), "no bytes");
  expect_corrupt(ChunkKind::kCodec, bytes, 0, "no output");
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4}, std::size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    expect_corrupt(ChunkKind::kCodec, bytes.first(size), raw.size(), "truncated");
  }
  for (unsigned garbage = 0; garbage < 256; ++garbage) {
    Chunk longer = encoded.bytes;
    longer.push_back(static_cast<std::byte>(garbage));
    expect_corrupt(ChunkKind::kCodec, longer, raw.size(), "one byte more");
  }
  Chunk twice = encoded.bytes;
  twice.insert(twice.end(), encoded.bytes.begin(), encoded.bytes.end());
  expect_corrupt(ChunkKind::kCodec, twice, raw.size(), "twice, for one");
  expect_corrupt(ChunkKind::kCodec, twice, raw.size() * 2, "twice, for two");

  // Bit flips: some decode to other bytes (the store's checksum finds those), and no flip does anything else.
  for (int i = 0; i < 3000; ++i) {
    Chunk damaged = encoded.bytes;
    for (std::uint64_t n = 1 + random_() % 4; n > 0; --n) {
      damaged[random_() % std::min<std::size_t>(damaged.size(), i % 2 == 0 ? 64 : damaged.size())] ^=
          static_cast<std::byte>(1u << random_() % 8);
    }
    Chunk out(raw.size());
    try {
      codec_->decode(ChunkKind::kCodec, damaged, out);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kCorrupt);
    }
  }
  // Random bytes.
  for (int i = 0; i < 2000; ++i) {
    const Chunk noise = random_chunk(random_, 1 + random_() % 300);
    Chunk out(301 + random_() % 3000);
    try {
      codec_->decode(ChunkKind::kCodec, noise, out);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kCorrupt);
    }
  }
  // The codec still works afterwards.
  Chunk back(raw.size());
  codec_->decode(ChunkKind::kCodec, encoded.bytes, back);
  EXPECT_TRUE(back == raw);
}

TEST_P(ExponentCodecTest, ManyThreadsShareOneCodec) {
  const std::vector<Chunk> chunks = corpus(random_);
  std::vector<EncodedChunk> encoded;
  for (const Chunk& chunk : chunks) encoded.push_back(codec_->encode(chunk));
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        Chunk back(chunks[i].size());
        codec_->decode(encoded[i].kind, encoded[i].bytes, back);
        if (back != chunks[i]) ++wrong;
        if (codec_->encode(chunks[i]).bytes != encoded[i].bytes) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong.load(), 0);
}

// Even a chunk that takes long to encode can be given up after one step, at any level; the codec can be used
// again.
TEST_P(ExponentCodecTest, EncodingAsksWhetherToStopAllAlong) {
  for (const ExponentCodecEntry& entry : exponent_codecs()) {
    if (entry.name != GetParam()) continue;
    for (const int level : {entry.min_level, entry.default_level, entry.max_level}) {
      if (entry.min_level == entry.max_level) break;  // has no levels, and copies
      const Chunk raw = exponent_chunk(random_, 5 * kBytesPerStopRequest / 2 + 11);
      const auto codec = make_exponent_codec(entry.name, level);
      std::size_t asked = 0;
      const EncodedChunk whole = codec->encode(raw, [&] {
        ++asked;
        return false;
      });
      EXPECT_GE(asked, 3u) << level;
      EXPECT_TRUE(codec->encode(raw).bytes == whole.bytes) << level;
      for (std::size_t stop_at = 1; stop_at <= asked; stop_at += 2) {
        std::size_t calls = 0;
        EXPECT_THROW(codec->encode(raw, [&] { return ++calls == stop_at; }), Error) << level;
        EXPECT_EQ(calls, stop_at);
        if (stop_at == 1) {
          EXPECT_TRUE(codec->encode(raw).bytes == whole.bytes) << level << ", after one given up";
        }
      }
    }
  }
}

// Chunks of several steps, with matches and literals across their borders.
TEST_P(ExponentCodecTest, ChunksOfSeveralStepsRoundTrip) {
  for (const std::size_t steps : {1u, 2u, 3u}) {
    for (const std::ptrdiff_t more : {-300, -13, -12, -5, -1, 0, 1, 4, 5, 12, 13, 300}) {
      const std::size_t size =
          static_cast<std::size_t>(static_cast<std::ptrdiff_t>(steps * kBytesPerStopRequest) + more);
      Chunk half_random = random_chunk(random_, size), periodic(size);
      for (std::size_t i = 0; i < size; ++i) {
        periodic[i] = static_cast<std::byte>(i % 251);
        if (i / 1000 % 2 == 0) half_random[i] = std::byte{0x7f};
      }
      Chunk middle_random =
          exponent_chunk(random_, size);  // random around every border, so that literals cross it
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t in_step = i % kBytesPerStopRequest;
        if (in_step < 2000 || in_step + 2000 > kBytesPerStopRequest)
          middle_random[i] = static_cast<std::byte>(random_());
      }
      for (const Chunk& raw : {half_random, periodic, middle_random, Chunk(size, std::byte{3})}) {
        const EncodedChunk encoded = codec_->encode(raw);
        if (GetParam() != "none") {
          EXPECT_EQ(encoded.kind, ChunkKind::kCodec) << size;
        }
        Chunk back(size);
        codec_->decode(encoded.kind, encoded.bytes, back);
        EXPECT_TRUE(back == raw) << steps << " steps and " << more;
      }
    }
  }
}

TEST_P(ExponentCodecTest, LevelsOutOfRangeAreUsageErrors) {
  for (const ExponentCodecEntry& entry : exponent_codecs()) {
    if (entry.name != GetParam()) continue;
    if (entry.min_level == entry.max_level) {
      EXPECT_THROW(make_exponent_codec(entry.name, 1), Error);
      EXPECT_THROW(make_exponent_codec(entry.name, 0), Error);
      continue;
    }
    const Chunk raw = exponent_chunk(random_, 30'000);
    for (int level = entry.min_level; level <= entry.max_level; ++level) {
      const auto codec = make_exponent_codec(entry.name, level);
      EXPECT_EQ(codec->level(), level);
      const EncodedChunk encoded = codec->encode(raw);
      EXPECT_EQ(encoded.kind, ChunkKind::kCodec);
      Chunk back(raw.size());
      codec_->decode(encoded.kind, encoded.bytes, back);  // by the codec of another level
      EXPECT_TRUE(back == raw) << level;
    }
    for (const int level : {entry.min_level - 1, entry.max_level + 1, -1000, 1000}) {
      try {
        make_exponent_codec(entry.name, level);
        ADD_FAILURE() << level;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kUsage);
        EXPECT_EQ(with_names(e.where()), "--level");
      }
    }
  }
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const ExponentCodecEntry& entry : exponent_codecs()) names.emplace_back(entry.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Registry, ExponentCodecTest, ::testing::ValuesIn(codec_names()),
                         [](const auto& info) { return info.param; });

TEST(ExponentCodecs, DefaultsAreThoseOfTheCommandLine) {
  EXPECT_EQ(make_exponent_codec("zstd")->level(), 0);
  EXPECT_EQ(make_exponent_codec("lz4")->level(), 4);
  EXPECT_EQ(make_exponent_codec("none")->level(), 0);
}

// Why zstd has this default: it comes close to the entropy of independent exponents, and below the levels
// that search for matches.
TEST(ExponentCodecs, ZstdWithoutMatchesComesCloseToTheEntropy) {
  std::mt19937_64 random(20260);
  std::normal_distribution<float> gauss(0, 0.02f);
  Chunk raw(700'000);
  for (std::byte& exponent : raw)
    exponent = static_cast<std::byte>(std::bit_cast<std::uint32_t>(gauss(random)) >> 23);
  std::array<std::uint64_t, 256> histogram{};
  for (const std::byte exponent : raw) ++histogram[static_cast<std::size_t>(exponent)];
  double entropy = 0;  // bytes
  for (const std::uint64_t count : histogram) {
    const double p = static_cast<double>(count) / static_cast<double>(raw.size());
    if (count > 0) entropy -= static_cast<double>(count) * std::log2(p) / 8;
  }
  const double bytes = static_cast<double>(make_exponent_codec("zstd")->encode(raw).bytes.size());
  EXPECT_LT(bytes, entropy * 1.03);
  EXPECT_GT(bytes, entropy);
  EXPECT_LT(bytes, 0.95 * static_cast<double>(make_exponent_codec("zstd", 1)->encode(raw).bytes.size()));
}

TEST(ExponentCodecs, UnknownNamesAreUnsupportedAndTheKnownAreListed) {
  for (const char* name : {"", "ZSTD", "gzip", "zstd "}) {
    try {
      make_exponent_codec(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
      for (const ExponentCodecEntry& entry : exponent_codecs()) {
        EXPECT_NE(std::string(e.what()).find(entry.name), std::string::npos);
      }
    }
  }
}

// The second oracle: the plain libraries, in both directions.
TEST(ExponentCodecZstd, IsAPlainZstandardFrame) {
  std::mt19937_64 random(7);
  const Chunk raw = exponent_chunk(random, 123'457);
  const auto codec = make_exponent_codec("zstd");
  const EncodedChunk encoded = codec->encode(raw);
  ASSERT_EQ(encoded.kind, ChunkKind::kCodec);
  EXPECT_EQ(ZSTD_getFrameContentSize(encoded.bytes.data(), encoded.bytes.size()), raw.size());
  Chunk back(raw.size() + 10);
  ASSERT_EQ(ZSTD_decompress(back.data(), back.size(), encoded.bytes.data(), encoded.bytes.size()),
            raw.size());
  back.resize(raw.size());
  EXPECT_TRUE(back == raw);

  Chunk foreign(ZSTD_compressBound(raw.size()));
  foreign.resize(ZSTD_compress(foreign.data(), foreign.size(), raw.data(), raw.size(), 9));
  Chunk decoded(raw.size());
  codec->decode(ChunkKind::kCodec, foreign, decoded);
  EXPECT_TRUE(decoded == raw);
}

TEST(ExponentCodecZstd, SeveralFramesAndFramesToSkipAreCorruption) {
  std::mt19937_64 random(7);
  const Chunk raw = exponent_chunk(random, 10'000);
  const auto codec = make_exponent_codec("zstd");
  const auto compressed = [&](std::size_t begin, std::size_t size) {
    Chunk frame(ZSTD_compressBound(size));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data() + begin, size, 1));
    return frame;
  };
  // Two frames that together hold the right bytes; the library alone would accept them.
  Chunk two = compressed(0, 5000);
  const Chunk second = compressed(5000, 5000);
  two.insert(two.end(), second.begin(), second.end());
  Chunk plain(raw.size());
  ASSERT_EQ(ZSTD_decompress(plain.data(), plain.size(), two.data(), two.size()), raw.size());
  Chunk out(raw.size());
  EXPECT_THROW(codec->decode(ChunkKind::kCodec, two, out), Error);

  // A skippable frame (magic 0x184D2A50, 4 bytes of content) before and after a good one.
  Chunk skip;
  for (const unsigned b : {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4})
    skip.push_back(static_cast<std::byte>(b));
  const Chunk good = compressed(0, raw.size());
  Chunk before = skip, after = good;
  before.insert(before.end(), good.begin(), good.end());
  after.insert(after.end(), skip.begin(), skip.end());
  EXPECT_THROW(codec->decode(ChunkKind::kCodec, before, out), Error);
  EXPECT_THROW(codec->decode(ChunkKind::kCodec, after, out), Error);
  EXPECT_THROW(codec->decode(ChunkKind::kCodec, skip, out), Error);
}

TEST(ExponentCodecLz4, IsAPlainLz4Block) {
  std::mt19937_64 random(7);
  const Chunk raw = exponent_chunk(random, 123'457);
  const auto codec = make_exponent_codec("lz4");
  const EncodedChunk encoded = codec->encode(raw);
  ASSERT_EQ(encoded.kind, ChunkKind::kCodec);
  Chunk back(raw.size() + 10);
  ASSERT_EQ(LZ4_decompress_safe(reinterpret_cast<const char*>(encoded.bytes.data()),
                                reinterpret_cast<char*>(back.data()), static_cast<int>(encoded.bytes.size()),
                                static_cast<int>(back.size())),
            static_cast<int>(raw.size()));
  back.resize(raw.size());
  EXPECT_TRUE(back == raw);

  Chunk foreign(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  foreign.resize(static_cast<std::size_t>(
      LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(foreign.data()),
                           static_cast<int>(raw.size()), static_cast<int>(foreign.size()))));
  Chunk decoded(raw.size());
  codec->decode(ChunkKind::kCodec, foreign, decoded);
  EXPECT_TRUE(decoded == raw);
}

}  // namespace
}  // namespace sluice::codec
