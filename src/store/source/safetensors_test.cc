#include "store/source/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::AllOf;
using ::testing::HasSubstr;

// The parser's error for a file with this header and `data_bytes` of data.
std::string error_of(std::string_view head, Bytes data_bytes) {
  try {
    parse_safetensors(head, head.size() + data_bytes, "m.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
std::string error_of_json(const std::string& json, Bytes data_bytes) {
  return error_of(safetensors_head(json), data_bytes);
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape, Bytes begin,
                  Bytes end) {
  return fmt::format("\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", name, dtype, shape,
                     begin, end);
}

TEST(Safetensors, ReadsTensorsInOrderOfTheirBytes) {
  const std::string json = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[2,3]", 4, 28) +
                           "," + entry("a", "BF16", "[2]", 0, 4) + "," +
                           entry("none", "I64", "[0,5]", 28, 28) + "," + entry("one", "U8", "[]", 28, 29) +
                           "}   ";
  const std::string head = safetensors_head(json);
  const SafetensorsHeader header = parse_safetensors(head, head.size() + 29, "m");
  EXPECT_EQ(header.bytes, head.size());
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].info.name, "a");
  EXPECT_EQ(header.tensors[0].offset, head.size());
  EXPECT_EQ(header.tensors[1].info.shape_text(), "[2, 3]");
  EXPECT_EQ(header.tensors[1].info.elements(), 6u);
  EXPECT_EQ(header.tensors[2].info.elements(), 0u);
  EXPECT_EQ(header.tensors[3].info.elements(), 1u);
}

TEST(Safetensors, AFileWithoutTensorsIsLegal) { EXPECT_EQ(error_of_json("{}", 0), "no error"); }

TEST(Safetensors, EveryDefectIsOneClearError) {
  const std::string good = entry("x", "BF16", "[4]", 0, 8);
  EXPECT_THAT(error_of("", 0), HasSubstr("too short"));
  EXPECT_THAT(error_of("\x01\x02\x03", 0), HasSubstr("expected at least 8 bytes, found 3"));
  EXPECT_THAT(error_of(little_endian_u64(0), 100), HasSubstr("is empty"));
  EXPECT_THAT(error_of(little_endian_u64(~0ull), 100),
              AllOf(HasSubstr("longer than the file"), HasSubstr("18446744073709551615")));
  EXPECT_THAT(error_of(little_endian_u64(200'000'000), 300'000'000), HasSubstr("larger than any legal one"));
  EXPECT_THAT(error_of(safetensors_head("{" + good + "}").substr(0, 20), 100), HasSubstr("cut short"));
  EXPECT_THAT(error_of_json("[" + good + "]", 8), HasSubstr("not a safetensors file"));
  EXPECT_THAT(error_of_json("{" + good, 8), HasSubstr("m.safetensors at byte"));
  EXPECT_THAT(error_of_json("{" + good + "} x", 8), HasSubstr("something follows"));
  EXPECT_THAT(error_of_json("{" + good + "," + entry("y", "BF16", "[2]", 4, 8) + "}", 8),
              HasSubstr("overlaps"));
  EXPECT_THAT(error_of_json("{" + good + "," + entry("y", "BF16", "[2]", 12, 16) + "}", 16),
              HasSubstr("hole"));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[2]", 4, 8) + "}", 8), HasSubstr("hole"));
  EXPECT_THAT(error_of_json("{" + good + "}", 7),
              AllOf(HasSubstr("outside of the file"), HasSubstr("tensor \"x\"")));
  EXPECT_THAT(error_of_json("{" + good + "}", 9), HasSubstr("bytes follow the last tensor"));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[4]", 8, 0) + "}", 8),
              HasSubstr("ends before it begins"));
  EXPECT_THAT(error_of_json("{" + good + "," + entry("x", "BF16", "[4]", 8, 16) + "}", 16),
              HasSubstr("listed twice"));
  EXPECT_THAT(error_of_json("{" + entry("x", "F7", "[4]", 0, 8) + "}", 8),
              AllOf(HasSubstr("unknown element type"), HasSubstr("\"F7\"")));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[4294967296,4294967296]", 0, 8) + "}", 8),
              HasSubstr("overflows"));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[0,4294967296,4294967296]", 0, 0) + "}", 0),
              HasSubstr("overflows"));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[5]", 0, 8) + "}", 8),
              AllOf(HasSubstr("10 bytes for BF16 [5]"), HasSubstr("found 8")));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[-4]", 0, 8) + "}", 8), HasSubstr("whole number"));
  EXPECT_THAT(error_of_json("{" + entry("x", "BF16", "[4.0]", 0, 8) + "}", 8), HasSubstr("whole number"));
  EXPECT_THAT(error_of_json("{\"x\":{\"dtype\":\"BF16\",\"shape\":[4]}}", 8),
              HasSubstr("no \"data_offsets\""));
  EXPECT_THAT(error_of_json(
                  "{\"x\":{\"dtype\":\"BF16\",\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]}}", 8),
              HasSubstr("\"dtype\" twice"));
  EXPECT_THAT(error_of_json("{\"x\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", 8),
              HasSubstr("3 numbers"));
  EXPECT_THAT(error_of_json("{\"x\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8],\"zip\":1}}", 8),
              HasSubstr("unknown field"));
  EXPECT_THAT(error_of_json("{\"x\":[1,2]}", 8), HasSubstr("an object"));
  EXPECT_THAT(error_of_json("{\"__metadata__\":{\"a\":1}," + good + "}", 8), HasSubstr("a string"));
  EXPECT_THAT(error_of_json("{\"__metadata__\":{},\"__metadata__\":{}," + good + "}", 8),
              HasSubstr("listed twice"));
  EXPECT_THAT(
      error_of_json(
          "{\"x\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,8]}}",
          8),
      HasSubstr("16 dimensions"));
}

TEST(Safetensors, ReadsItsHeaderAlone) {
  const TempDirectory temp;
  const std::string bytes = safetensors_bytes({{"x", "BF16", {4}, "12345678"}}, 7);
  write_file(temp / "m.safetensors", bytes);
  const InputFile file = InputFile::open(temp / "m.safetensors");
  EXPECT_EQ(read_safetensors_head(file), bytes.substr(0, bytes.size() - 8));
  EXPECT_EQ(read_safetensors(file).tensors.at(0).offset, bytes.size() - 8);
  write_file(temp / "cut.safetensors", bytes.substr(0, 30));
  EXPECT_THROW(read_safetensors(InputFile::open(temp / "cut.safetensors")), Error);
  write_file(temp / "empty.safetensors", "");
  EXPECT_THROW(read_safetensors(InputFile::open(temp / "empty.safetensors")), Error);
}

// Random bits and cuts: an error or the right result, never a crash (the sanitizer build sees more).
TEST(Safetensors, SurvivesRandomDamage) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  const std::string good = safetensors_bytes(
      tiny_tensors({.layers = 1, .experts = 2, .hidden = 4, .width = 4}), 3, "{\"format\":\"pt\"}");
  const Bytes head_bytes =
      8 + static_cast<unsigned char>(good[0]) + 256u * static_cast<unsigned char>(good[1]);
  for (int i = 0; i < 5000; ++i) {
    std::string head = good.substr(0, head_bytes);
    for (unsigned edits = 1 + random() % 2; edits-- > 0;)
      head[random() % head.size()] ^= static_cast<char>(1u << random() % 8);
    if (random() % 4 == 0) head.resize(random() % head.size());
    try {
      const SafetensorsHeader header = parse_safetensors(head, good.size(), "m");
      Bytes end = header.bytes;
      for (const SafetensorsTensor& tensor : header.tensors) {
        EXPECT_EQ(tensor.offset, end);
        end += tensor.length;
        EXPECT_EQ(tensor.info.elements() * dtype_bytes(tensor.info.dtype), tensor.length);
      }
      EXPECT_EQ(end, good.size());
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace sluice::store
