#include "store/source/gguf_types.h"

#include <algorithm>
#include <vector>

namespace sluice::store {
namespace {

using namespace codec;

struct Row {
  std::uint32_t number;
  std::string_view name;
  const MatrixFormat* format = nullptr;
  std::optional<DType> words = {};
  std::uint64_t elements = 0;  // for types without a format
  Bytes bytes = 0;
};

// The numbers 4, 5, 31 to 33 and 36 to 38 were given up; 9 and 15 are never in files.
constexpr Row kRows[] = {
    {0, "F32", &kFormatF32, DType::kF32},
    {1, "F16", &kFormatF16, DType::kF16},
    {2, "Q4_0", &kFormatQ40},
    {3, "Q4_1", &kFormatQ41},
    {6, "Q5_0", &kFormatQ50},
    {7, "Q5_1", &kFormatQ51},
    {8, "Q8_0", &kFormatQ80},
    {10, "Q2_K", &kFormatQ2K},
    {11, "Q3_K", &kFormatQ3K},
    {12, "Q4_K", &kFormatQ4K},
    {13, "Q5_K", &kFormatQ5K},
    {14, "Q6_K", &kFormatQ6K},
    {16, "IQ2_XXS", nullptr, {}, 256, 66},
    {17, "IQ2_XS", nullptr, {}, 256, 74},
    {18, "IQ3_XXS", nullptr, {}, 256, 98},
    {19, "IQ1_S", nullptr, {}, 256, 50},
    {20, "IQ4_NL", &kFormatIq4Nl},
    {21, "IQ3_S", nullptr, {}, 256, 110},
    {22, "IQ2_S", nullptr, {}, 256, 82},
    {23, "IQ4_XS", &kFormatIq4Xs},
    {24, "I8", nullptr, DType::kI8, 1, 1},
    {25, "I16", nullptr, DType::kI16, 1, 2},
    {26, "I32", nullptr, DType::kI32, 1, 4},
    {27, "I64", nullptr, DType::kI64, 1, 8},
    {28, "F64", nullptr, DType::kF64, 1, 8},
    {29, "IQ1_M", nullptr, {}, 256, 56},
    {30, "BF16", &kFormatBf16, DType::kBF16},
    {34, "TQ1_0", nullptr, {}, 256, 54},
    {35, "TQ2_0", nullptr, {}, 256, 66},
    {39, "MXFP4", &kFormatMxfp4},
    {40, "NVFP4", nullptr, {}, 64, 36},
    {41, "Q1_0", nullptr, {}, 128, 18},
    {42, "Q2_0", nullptr, {}, 64, 18},
};

std::vector<GgufType> all_types() {
  std::vector<GgufType> types;
  for (const Row& row : kRows) {
    GgufType type = {row.number, row.name, row.elements, row.bytes, row.format, row.words};
    if (row.format != nullptr) {
      type.elements = row.format->block.columns;
      type.bytes = row.format->bytes({1, type.elements});
    }
    types.push_back(type);
  }
  return types;
}

}  // namespace

const GgufType* gguf_type(std::uint32_t number) {
  static const std::vector<GgufType> types = all_types();
  const auto found = std::ranges::find(types, number, &GgufType::number);
  return found == types.end() ? nullptr : &*found;
}

}  // namespace sluice::store
