// Codes of 4 bits that stand for the numbers of a table, times a scale: GGUF's IQ4_NL, IQ4_XS and MXFP4, and
// MXFP4 as safetensors have it, in two planes. docs/formats.md.
#include "codec/blocks/block_codes.h"
#include "codec/blocks/tables.h"

namespace sluice::codec {
namespace {

using namespace blocks;

// OCP's E8M0: a power of two; 255 is no number.
bool is_number(std::byte e8m0) { return e8m0 != std::byte{255}; }

struct Iq4Nl {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 18;
  static bool sound(const std::byte* block) { return std::isfinite(half(block)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block);
    for (unsigned i = 0; i < kElements; ++i) out[i] = d * kIq4[nibble32(block + 2, i)];
  }
};

struct Iq4Xs {
  static constexpr std::uint64_t kElements = 256;
  static constexpr Bytes kBytes = 136;
  static bool sound(const std::byte* block) { return std::isfinite(half(block)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block);
    for (unsigned j = 0; j < kElements / 32; ++j) {
      const float of_sub_block = d * static_cast<float>(iq4xs_scale(block, j));
      for (unsigned i = 0; i < 32; ++i)
        out[32 * j + i] = of_sub_block * kIq4[nibble32(block + 8 + 16 * j, i)];
    }
  }
};

struct Mxfp4 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 17;
  static bool sound(const std::byte* block) { return is_number(*block); }
  static void decode(const std::byte* block, float* out) {
    const float scale = power_of_two(*block);
    for (unsigned i = 0; i < kElements; ++i) out[i] = scale * kFp4[nibble32(block + 1, i)];
  }
};

// A plane of codes, the even element in the lower half of a byte; and one of scales for 32 elements each.
constexpr std::uint64_t kPairElements = 32;

void check_pair(const MatrixRef& matrix) {
  const std::byte* const scales = device::host_space().pointer(matrix.planes[1]);
  for (Bytes i = 0; i < matrix.format->plane_bytes(matrix.shape, 1); ++i)
    if (!is_number(scales[i]))
      throw Error(ErrorKind::kCorrupt, "a matrix in the format mxfp4_pair has a scale that is no number")
          .expected("scales below 255")
          .found("255 as scale " + std::to_string(i))
          .fix("copy the file again from where it came from");
}

void pair_row(const MatrixRef& matrix, std::uint64_t row, float* out) {
  const std::byte* const codes =
      device::host_space().pointer(matrix.planes[0]) + row * (matrix.shape.columns / 2);
  const std::byte* const scales =
      device::host_space().pointer(matrix.planes[1]) + row * (matrix.shape.columns / kPairElements);
  for (std::uint64_t c = 0; c < matrix.shape.columns; ++c)
    out[c] = power_of_two(scales[c / kPairElements]) * kFp4[byte(codes + c / 2) >> (c % 2 * 4) & 15];
}

}  // namespace

constinit const MatrixFormat kFormatIq4Nl = BlockFormat<Iq4Nl>::named("iq4_nl");
constinit const MatrixFormat kFormatIq4Xs = BlockFormat<Iq4Xs>::named("iq4_xs");
constinit const MatrixFormat kFormatMxfp4 = BlockFormat<Mxfp4>::named("mxfp4");
constinit const MatrixFormat kFormatMxfp4Pair = {
    .name = "mxfp4_pair",
    .planes = {{{"codes", bytes_in_blocks<1, 2, 1>}, {"scales", bytes_in_blocks<1, kPairElements, 1>}}},
    .block = {1, kPairElements},
    .ragged = false,
    .input = InputForm::kBlocks,
    .check = check_pair,
    .row = pair_row};

}  // namespace sluice::codec
