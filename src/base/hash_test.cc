#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace sluice {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

// Oracle: the sanity values of the xxHash specification for empty input, and `xxhsum -H3` for the text.
TEST(Xxh3, KnownValues) {
  EXPECT_EQ(hex64(xxh3({})), "2d06800538d394c2");
  EXPECT_EQ(hex64(xxh3(bytes_of("abc"))), "78af5f94892f3950");
}

// FIPS 180-2, appendix B.
TEST(Sha256, KnownValues) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(HashStreams, AgreeWithTheWholeHoweverTheInputIsCut) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 1000u, 100'000u}) {
    const std::vector<std::byte> data = random_bytes(random, size);
    Xxh3Stream xxh;
    Sha256Stream sha;
    for (std::size_t at = 0; at < size;) {
      const std::size_t piece = std::min<std::size_t>(size - at, random() % 5000);
      xxh.update(std::span(data).subspan(at, piece));
      sha.update(std::span(data).subspan(at, piece));
      at += piece;
    }
    EXPECT_EQ(xxh.digest(), xxh3(data)) << size;
    EXPECT_EQ(sha.hex_digest(), sha256_hex(data)) << size;
  }
}

TEST(HashStreams, DigestOfXxh3MayBeTakenInBetween) {
  Xxh3Stream stream;
  stream.update(bytes_of("ab"));
  EXPECT_EQ(stream.digest(), xxh3(bytes_of("ab")));
  stream.update(bytes_of("c"));
  EXPECT_EQ(stream.digest(), xxh3(bytes_of("abc")));
}

TEST(Hex64, RoundTripsAndRefusesAllElse) {
  std::uint64_t value = 7;
  for (const std::uint64_t number : {0ull, 1ull, 0x0123456789abcdefull, ~0ull}) {
    ASSERT_TRUE(parse_hex64(hex64(number), value));
    EXPECT_EQ(value, number);
  }
  value = 7;
  for (const char* text : {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF",
                           "0123456789abcdeg", " 123456789abcdef", "0x23456789abcdef"}) {
    EXPECT_FALSE(parse_hex64(text, value)) << text;
  }
  EXPECT_EQ(value, 7u) << "untouched on failure";
}

}  // namespace
}  // namespace sluice
