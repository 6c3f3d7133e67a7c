// The quantised blocks of GGUF and MXFP4's two planes: bit for bit what other decoders make of the same bytes
// (tests/data/formats), and what their scales may not be.
#include <gtest/gtest.h>
#include <zstd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/float16.h"
#include "base/json/json.h"
#include "codec/matrix_format.h"
#include "device/space.h"

namespace sluice::codec {
namespace {

Json vectors(const std::string& name) {
  const std::string path = SLUICE_SOURCE_DIR "/tests/data/formats/" + name + ".zst";
  const std::string packed = read_text_file(path, Bytes{1} << 20);
  std::string text(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  EXPECT_EQ(ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size()), text.size()) << path;
  return parse_json(text, path);
}

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<float> floats_of(const std::string& hex) {
  const std::vector<std::byte> bytes = bytes_of(hex);
  std::vector<float> floats(bytes.size() / 4);
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// Equal bits, but for the sign of a zero.
void expect_same(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != 0 || expected[i] != 0) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << "element " << i << ": " << found[i] << ", expected " << expected[i];
    }
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<float> decoded(const MatrixFormat& format, MatrixShape shape,
                           const std::vector<std::byte>& bytes) {
  const MatrixRef matrix{&format, shape, {device::host_space().address(bytes.data())}};
  std::vector<float> out(shape.elements());
  for (std::uint64_t row = 0; row < shape.rows; ++row) row_to_float(matrix, row, &out[row * shape.columns]);
  return out;
}

TEST(Blocks, AreWhatOtherDecodersMakeOfThem) {
  std::set<std::string> known, tried;
  for (const MatrixFormat* const format : matrix_formats())
    if (format->plane_count() == 1 && format->planes[0].name == "blocks") known.emplace(format->name);
  EXPECT_EQ(known.size(), 13u);
  for (const Json& type : vectors("gguf_blocks.json")) {
    const std::string name = lower(type.at("type").get<std::string>());
    SCOPED_TRACE(name);
    const MatrixFormat* const format = find_format(name);
    if (format == nullptr) continue;
    tried.insert(name);
    const std::uint64_t elements = type.at("elements").get<std::uint64_t>();
    EXPECT_EQ(format->block, (MatrixShape{1, elements}));
    EXPECT_EQ(format->bytes({1, elements}), type.at("bytes").get<Bytes>());
    EXPECT_FALSE(format->fits({1, elements + 1}));
    // All blocks of the type as a row each, and as one row.
    std::vector<std::byte> all;
    std::vector<float> expected;
    std::uint64_t sound = 0;
    for (std::size_t i = 0; i < type.at("blocks").size(); ++i) {
      const std::vector<std::byte> block = bytes_of(type["blocks"][i].get<std::string>());
      const std::vector<float> values = floats_of(type["values"][i].get<std::string>());
      if (!std::isfinite(values[0])) continue;  // MXFP4 of all ones
      ++sound;
      all.insert(all.end(), block.begin(), block.end());
      expected.insert(expected.end(), values.begin(), values.end());
    }
    EXPECT_GE(sound, 3u);
    expect_same(decoded(*format, {sound, elements}, all), expected);
    expect_same(decoded(*format, {1, sound * elements}, all), expected);
    format->check({format, {sound, elements}, {device::host_space().address(all.data())}});
  }
  EXPECT_EQ(tried, known);
}

TEST(Blocks, Mxfp4InTwoPlanesHasTheNumbersOfItsBlocks) {
  const Json all = vectors("safetensors_formats.json").at("gpt_oss_mxfp4");
  const Json& codes = all.at("gate_up_proj_blocks");
  const std::vector<std::byte> code_bytes = bytes_of(codes.at("hex").get<std::string>()),
                               scale_bytes =
                                   bytes_of(all.at("gate_up_proj_scales").at("hex").get<std::string>());
  const std::uint64_t rows = codes["shape"][0].get<std::uint64_t>() * codes["shape"][1].get<std::uint64_t>(),
                      columns = 32 * codes["shape"][2].get<std::uint64_t>();
  const MatrixFormat& format = kFormatMxfp4Pair;
  ASSERT_EQ(format.plane_bytes({rows, columns}, 0), code_bytes.size());
  ASSERT_EQ(format.plane_bytes({rows, columns}, 1), scale_bytes.size());
  const MatrixRef pair{
      &format,
      {rows, columns},
      {device::host_space().address(code_bytes.data()), device::host_space().address(scale_bytes.data())}};
  format.check(pair);
  // Rows alternate: a gate's, then the row of up.
  std::vector<float> gate, up, row(columns);
  for (std::uint64_t r = 0; r < rows; ++r) {
    row_to_float(pair, r, row.data());
    (r % 2 == 0 ? gate : up).insert((r % 2 == 0 ? gate : up).end(), row.begin(), row.end());
  }
  expect_same(gate, floats_of(all.at("gate").at("hex").get<std::string>()));
  expect_same(up, floats_of(all.at("up").at("hex").get<std::string>()));
  const std::vector<std::byte> gate_blocks =
      bytes_of(all.at("ggml_gate_blocks").at("hex").get<std::string>());
  expect_same(decoded(kFormatMxfp4, {rows / 2, columns}, gate_blocks), gate);
}

// A scale that is infinite or NaN, wherever a block has one, in the last block of the second row.
TEST(Blocks, ScalesThatAreNoNumbersAreRefused) {
  const struct {
    const MatrixFormat& format;
    std::vector<std::size_t> halves;  // where a block has binary16 numbers
  } all[] = {{kFormatQ40, {0}},    {kFormatQ41, {0, 2}},   {kFormatQ50, {0}},   {kFormatQ51, {0, 2}},
             {kFormatQ80, {0}},    {kFormatQ2K, {80, 82}}, {kFormatQ3K, {108}}, {kFormatQ4K, {0, 2}},
             {kFormatQ5K, {0, 2}}, {kFormatQ6K, {208}},    {kFormatIq4Nl, {0}}, {kFormatIq4Xs, {0}}};
  for (const auto& [format, halves] : all)
    for (const std::size_t at : halves)
      for (const std::uint16_t bad : {0x7c00, 0xfc00, 0x7e00}) {
        const MatrixShape shape{2, 2 * format.block.columns};
        const Bytes block = format.bytes({1, format.block.columns});
        std::vector<std::byte> bytes(format.bytes(shape));
        const MatrixRef matrix{&format, shape, {device::host_space().address(bytes.data())}};
        EXPECT_NO_THROW(format.check(matrix)) << format.name;
        std::memcpy(&bytes[3 * block + at], &bad, 2);
        try {
          format.check(matrix);
          ADD_FAILURE() << format.name << " takes a scale that is no number";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
          EXPECT_NE(error.found_text().find("row 1"), std::string::npos) << error.what();
        }
      }
  std::vector<std::byte> block(17);
  const MatrixRef matrix{&kFormatMxfp4, {1, 32}, {device::host_space().address(block.data())}};
  EXPECT_NO_THROW(kFormatMxfp4.check(matrix));
  block[0] = std::byte{255};
  EXPECT_THROW(kFormatMxfp4.check(matrix), Error);
  const std::vector<std::byte> codes(16);
  std::vector<std::byte> scale{std::byte{254}};
  const MatrixRef pair{
      &kFormatMxfp4Pair,
      {1, 32},
      {device::host_space().address(codes.data()), device::host_space().address(scale.data())}};
  EXPECT_NO_THROW(kFormatMxfp4Pair.check(pair));
  scale[0] = std::byte{255};
  EXPECT_THROW(kFormatMxfp4Pair.check(pair), Error);
}

}  // namespace
}  // namespace sluice::codec
