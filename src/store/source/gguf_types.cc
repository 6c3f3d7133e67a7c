#include "store/source/gguf_types.h"

#include <algorithm>
#include <iterator>

namespace sluice::store {
namespace {

using namespace codec;

// The numbers 4, 5, 31 to 33 and 36 to 38 were given up; 9 and 15 are never in files.
constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, &kFormatF32, DType::kF32},
    {1, "F16", 1, 2, &kFormatF16, DType::kF16},
    {2, "Q4_0", 32, 18, &kFormatQ40, {}},
    {3, "Q4_1", 32, 20, &kFormatQ41, {}},
    {6, "Q5_0", 32, 22, &kFormatQ50, {}},
    {7, "Q5_1", 32, 24, &kFormatQ51, {}},
    {8, "Q8_0", 32, 34, &kFormatQ80, {}},
    {10, "Q2_K", 256, 84, &kFormatQ2K, {}},
    {11, "Q3_K", 256, 110, &kFormatQ3K, {}},
    {12, "Q4_K", 256, 144, &kFormatQ4K, {}},
    {13, "Q5_K", 256, 176, &kFormatQ5K, {}},
    {14, "Q6_K", 256, 210, &kFormatQ6K, {}},
    {16, "IQ2_XXS", 256, 66, nullptr, {}},
    {17, "IQ2_XS", 256, 74, nullptr, {}},
    {18, "IQ3_XXS", 256, 98, nullptr, {}},
    {19, "IQ1_S", 256, 50, nullptr, {}},
    {20, "IQ4_NL", 32, 18, &kFormatIq4Nl, {}},
    {21, "IQ3_S", 256, 110, nullptr, {}},
    {22, "IQ2_S", 256, 82, nullptr, {}},
    {23, "IQ4_XS", 256, 136, &kFormatIq4Xs, {}},
    {24, "I8", 1, 1, nullptr, DType::kI8},
    {25, "I16", 1, 2, nullptr, DType::kI16},
    {26, "I32", 1, 4, nullptr, DType::kI32},
    {27, "I64", 1, 8, nullptr, DType::kI64},
    {28, "F64", 1, 8, nullptr, DType::kF64},
    {29, "IQ1_M", 256, 56, nullptr, {}},
    {30, "BF16", 1, 2, &kFormatBf16, DType::kBF16},
    {34, "TQ1_0", 256, 54, nullptr, {}},
    {35, "TQ2_0", 256, 66, nullptr, {}},
    {39, "MXFP4", 32, 17, &kFormatMxfp4, {}},
    {40, "NVFP4", 64, 36, nullptr, {}},
    {41, "Q1_0", 128, 18, nullptr, {}},
    {42, "Q2_0", 64, 18, nullptr, {}},
};

}  // namespace

const GgufType* gguf_type(std::uint32_t number) {
  const auto* const found = std::ranges::find(kTypes, number, &GgufType::number);
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace sluice::store
