#include "kernels_limits.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::bench {

std::uint64_t read_streams(std::span<const std::byte> bytes, std::size_t apart) {
  constexpr std::size_t kStreams = 8, kLine = 64;
  std::uint64_t sums[kStreams] = {};
  for (std::size_t first = 0; first + kStreams * apart <= bytes.size(); first += kStreams * apart) {
    const std::byte* p = bytes.data() + first;
    for (std::size_t i = 0; i + kLine <= apart; i += kLine) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        std::uint64_t word;
        std::memcpy(&word, p + s * apart + i, sizeof(word));
        sums[s] ^= word;
      }
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t s : sums) sum ^= s;
  return sum;
}

namespace {

#if defined(__x86_64__)
constexpr std::size_t kFmaLoops = 4'000'000;

[[gnu::target("avx512f")]] float fma_avx512(std::size_t loops) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_set1_ps(1.0f);
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_fmadd_ps(a, x, y);
  }
  float out[16], sum = 0;
  for (const auto& a : acc) {
    _mm512_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}

// Each loop makes four products of full tiles from tile registers.
[[gnu::target("amx-tile,amx-bf16")]] void tiles_amx(std::size_t loops) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes;
  __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  for (std::size_t i = 0; i < loops / 32; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

[[gnu::target("avx512f,avx512bf16")]] float pairs_avx512bf16(std::size_t loops) {
  __m512 acc[16];
  for (auto& a : acc) a = _mm512_set1_ps(1.0f);
  const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f7f)),  // 0.996
      y = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3a83));             // 0.001
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 16
    for (auto& a : acc) a = _mm512_dpbf16_ps(a, x, y);
  }
  float out[16], sum = 0;
  for (const auto& a : acc) {
    _mm512_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}

[[gnu::target("avx2,fma")]] float fma_avx2(std::size_t loops) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1.0f);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (std::size_t i = 0; i < loops; ++i) {
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  }
  float out[8], sum = 0;
  for (const auto& a : acc) {
    _mm256_storeu_ps(out, a);
    sum += out[0];
  }
  return sum;
}
#endif

}  // namespace

double fma_peak_run(Isa isa, float* sum) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512 || isa == Isa::kAvx512Vbmi2) {
    *sum += fma_avx512(kFmaLoops);
    return 2.0 * 12 * 16 * kFmaLoops;
  }
  if (isa == Isa::kAvx512Bf16) {
    *sum += pairs_avx512bf16(kFmaLoops);
    return 4.0 * 16 * 16 * kFmaLoops;
  }
  if (isa == Isa::kAmx) {
    tiles_amx(kFmaLoops);
    return 4.0 * 16 * 16 * 32 * 2 * kFmaLoops / 32;
  }
  if (isa == Isa::kAvx2) {
    *sum += fma_avx2(kFmaLoops);
    return 2.0 * 12 * 8 * kFmaLoops;
  }
#endif
  (void)isa, (void)sum;
  return 0;
}

}  // namespace sluice::bench
