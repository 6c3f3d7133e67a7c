// Loads, stores, constants and casts. Masked loads and stores touch only the lanes of their masks.
#pragma once

#include "emulation/lanes.h"

namespace sluice::emulation {
namespace {

template <class V>
inline V loaded(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
template <class T, class V>
inline V loaded(std::uint64_t mask, const void* p, const V& otherwise) {
  auto l = lanes<T>(otherwise);
  for (std::size_t i = 0; i < l.kCount; ++i) {
    if ((mask >> i & 1) != 0) __builtin_memcpy(&l[i], static_cast<const T*>(p) + i, sizeof(T));
  }
  return vector(l);
}
template <class T, class V>
inline void stored(std::uint64_t mask, void* p, const V& v) {
  const auto l = lanes<T>(v);
  for (std::size_t i = 0; i < l.kCount; ++i) {
    if ((mask >> i & 1) != 0) __builtin_memcpy(static_cast<T*>(p) + i, &l[i], sizeof(T));
  }
}
// The aligned forms raise #GP at other addresses.
template <std::size_t kBytes>
inline void require_aligned(const void* p) {
  if (reinterpret_cast<std::uintptr_t>(p) % kBytes != 0) __builtin_trap();
}

inline __m512i _mm512_loadu_si512(const void* p) { return loaded<__m512i>(p); }
inline __m512 _mm512_loadu_ps(const void* p) { return loaded<__m512>(p); }
inline __m256i _mm256_loadu_epi8(const void* p) { return loaded<__m256i>(p); }
inline __m512i _mm512_load_si512(const void* p) {
  require_aligned<64>(p);
  return loaded<__m512i>(p);
}
inline __m512 _mm512_load_ps(const void* p) {
  require_aligned<64>(p);
  return loaded<__m512>(p);
}

inline __m512i _mm512_maskz_loadu_epi8(__mmask64 k, const void* p) {
  return loaded<std::int8_t>(k, p, __m512i{});
}
inline __m512i _mm512_maskz_loadu_epi16(__mmask32 k, const void* p) {
  return loaded<std::int16_t>(k, p, __m512i{});
}
inline __m512i _mm512_maskz_loadu_epi32(__mmask16 k, const void* p) {
  return loaded<std::int32_t>(k, p, __m512i{});
}
inline __m512 _mm512_maskz_loadu_ps(__mmask16 k, const void* p) { return loaded<float>(k, p, __m512{}); }
inline __m512i _mm512_mask_loadu_epi8(__m512i src, __mmask64 k, const void* p) {
  return loaded<std::int8_t>(k, p, src);
}
inline __m256i _mm256_maskz_loadu_epi8(__mmask32 k, const void* p) {
  return loaded<std::int8_t>(k, p, __m256i{});
}

inline void _mm512_storeu_si512(void* p, __m512i v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void _mm512_storeu_ps(void* p, __m512 v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void _mm256_storeu_epi8(void* p, __m256i v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void _mm512_store_si512(void* p, __m512i v) {
  require_aligned<64>(p);
  __builtin_memcpy(p, &v, sizeof(v));
}
inline void _mm512_stream_si512(void* p, __m512i v) { _mm512_store_si512(p, v); }
inline void _mm512_store_ps(void* p, __m512 v) {
  require_aligned<64>(p);
  __builtin_memcpy(p, &v, sizeof(v));
}

inline void _mm512_mask_storeu_epi8(void* p, __mmask64 k, __m512i v) { stored<std::int8_t>(k, p, v); }
inline void _mm512_mask_storeu_epi16(void* p, __mmask32 k, __m512i v) { stored<std::int16_t>(k, p, v); }
inline void _mm512_mask_storeu_epi32(void* p, __mmask16 k, __m512i v) { stored<std::int32_t>(k, p, v); }
inline void _mm512_mask_storeu_ps(void* p, __mmask16 k, __m512 v) { stored<float>(k, p, v); }
inline void _mm256_mask_storeu_epi8(void* p, __mmask32 k, __m256i v) { stored<std::int8_t>(k, p, v); }

inline __m512i _mm512_setzero_si512() { return __m512i{}; }
inline __m512 _mm512_setzero_ps() { return __m512{}; }
inline __m512i _mm512_set1_epi8(char x) {
  return made<__m512i, std::int8_t>([&](std::size_t) { return x; });
}
inline __m512i _mm512_set1_epi16(short x) {
  return made<__m512i, std::int16_t>([&](std::size_t) { return x; });
}
inline __m512i _mm512_set1_epi32(int x) {
  return made<__m512i, std::int32_t>([&](std::size_t) { return x; });
}
inline __m512i _mm512_set1_epi64(long long x) {
  return made<__m512i, std::int64_t>([&](std::size_t) { return x; });
}
inline __m512 _mm512_set1_ps(float x) {
  return made<__m512, float>([&](std::size_t) { return x; });
}
inline __m512i _mm512_maskz_set1_epi8(__mmask64 k, char x) {
  return kept<std::int8_t>(k, _mm512_set1_epi8(x));
}
inline __m512i _mm512_movm_epi8(__mmask64 k) { return _mm512_maskz_set1_epi8(k, -1); }

// The lowest lane first ("r"), or last.
inline __m512i _mm512_setr_epi32(int e0, int e1, int e2, int e3, int e4, int e5, int e6, int e7, int e8,
                                 int e9, int e10, int e11, int e12, int e13, int e14, int e15) {
  return vector(
      Lanes<std::int32_t, __m512i>{{e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, e13, e14, e15}});
}
inline __m512i _mm512_setr_epi64(long long e0, long long e1, long long e2, long long e3, long long e4,
                                 long long e5, long long e6, long long e7) {
  return vector(Lanes<std::int64_t, __m512i>{{e0, e1, e2, e3, e4, e5, e6, e7}});
}
inline __m512i _mm512_set_epi64(long long e7, long long e6, long long e5, long long e4, long long e3,
                                long long e2, long long e1, long long e0) {
  return _mm512_setr_epi64(e0, e1, e2, e3, e4, e5, e6, e7);
}
// The same four lanes again and again.
inline __m512i _mm512_set4_epi32(int e3, int e2, int e1, int e0) {
  return _mm512_setr_epi32(e0, e1, e2, e3, e0, e1, e2, e3, e0, e1, e2, e3, e0, e1, e2, e3);
}

// Reinterprets bits; upper parts that Intel leaves undefined are 0xa5, so that no code can rely on them.
template <class To, class From>
inline To cast(const From& from) {
  To to;
  if constexpr (sizeof(To) > sizeof(From)) __builtin_memset(&to, 0xa5, sizeof(to));
  __builtin_memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return to;
}
inline __m512 _mm512_castsi512_ps(__m512i a) { return cast<__m512>(a); }
inline __m512i _mm512_castps_si512(__m512 a) { return cast<__m512i>(a); }
inline __m128 _mm512_castps512_ps128(__m512 a) { return cast<__m128>(a); }
inline __m256 _mm512_castps512_ps256(__m512 a) { return cast<__m256>(a); }
inline __m256i _mm512_castsi512_si256(__m512i a) { return cast<__m256i>(a); }
inline __m512i _mm512_castsi128_si512(__m128i a) { return cast<__m512i>(a); }
inline __m512i _mm512_zextsi128_si512(__m128i a) {
  __m512i v{};
  __builtin_memcpy(&v, &a, sizeof(a));
  return v;
}

}  // namespace
}  // namespace sluice::emulation
