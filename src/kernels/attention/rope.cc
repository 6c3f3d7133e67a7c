// Rotary positions. Products and sums are rounded one by one, as the published code does, so plain code has
// the same bits in any compilation.
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t kMostPairs = 1024;  // per head; published models have 64 at most

void rotate(const float* first, const float* second, std::size_t pair_stride, std::size_t half,
            const float* cos, const float* sin, float* out) {
  for (std::size_t i = 0; i < half; ++i) {
    const float a = first[i * pair_stride];
    const float b = second[i * pair_stride];
    out[i] = a * cos[i] - b * sin[i];
    out[i + half] = b * cos[i] + a * sin[i];
  }
}

}  // namespace

void rope(RopeForm form, float* x, std::size_t heads, std::size_t head_stride, std::size_t half,
          const float* cos, const float* sin) {
  SLUICE_CHECK(half <= kMostPairs, fmt::format("{} pairs in a head", half));
  for (std::size_t h = 0; h < heads; ++h) {
    float* head = x + h * head_stride;
    if (form == RopeForm::kHalf) {
      rotate(head, head + half, 1, half, cos, sin, head);  // reads a pair before it writes the pair
    } else {
      std::array<float, 2 * kMostPairs> pairs;
      for (std::size_t i = 0; i < 2 * half; ++i) pairs[i] = head[i];
      rotate(pairs.data(), pairs.data() + 1, 2, half, cos, sin, head);
    }
  }
}

}  // namespace sluice::kernels
