// A warp of a CUDA device: warp.h with one lane a thread.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace sluice::kernels::gpu {

class CudaWarp {
 public:
  using Float = float;
  using Word = std::uint32_t;
  using Mask = bool;
  struct Quad {
    Word of[4];
  };
  template <int N>
  struct Words {
    Word of[N];
  };
  template <int N>
  struct Floats {
    Float of[N];
  };

  // `shared`: bytes that a warp has for itself, of those of its block.
  __device__ __forceinline__ explicit CudaWarp(std::uint64_t index, std::uint32_t shared = 0)
      : index_(index), shared_(shared) {}

  __device__ __forceinline__ std::uint64_t index() const { return index_; }
  __device__ __forceinline__ Word lane() const { return threadIdx.x % 32; }

  __device__ __forceinline__ std::byte* shared() const {
    extern __shared__ uint4 shared_memory[];
    return reinterpret_cast<std::byte*>(shared_memory) + threadIdx.x / 32 * shared_;
  }

  template <class T>
  static __device__ __forceinline__ T load(const T* p, Word at) {
    return p[at];
  }
  template <class T>
  static __device__ __forceinline__ T load_if(Mask mask, const T* p, Word at, T other) {
    return mask ? p[at] : other;
  }
  template <class T, class V>
  static __device__ __forceinline__ void store(T* p, Word at, V v) {
    p[at] = v;
  }
  template <class T, class V>
  static __device__ __forceinline__ void store_if(Mask mask, T* p, Word at, V v) {
    if (mask) p[at] = v;
  }
  static __device__ __forceinline__ Word load_byte(const std::byte* p, Word at) {
    return reinterpret_cast<const std::uint8_t*>(p)[at];
  }
  static __device__ __forceinline__ Word load_byte_if(Mask mask, const std::byte* p, Word at, Word other) {
    return mask ? Word{reinterpret_cast<const std::uint8_t*>(p)[at]} : other;
  }
  static __device__ __forceinline__ Word load_half(const std::byte* p, Word at) {
    return *reinterpret_cast<const std::uint16_t*>(p + at);
  }
  static __device__ __forceinline__ Word load_half_if(Mask mask, const std::byte* p, Word at, Word other) {
    return mask ? Word{*reinterpret_cast<const std::uint16_t*>(p + at)} : other;
  }
  static __device__ __forceinline__ void store_byte_if(Mask mask, std::byte* p, Word at, Word v) {
    if (mask) reinterpret_cast<std::uint8_t*>(p)[at] = static_cast<std::uint8_t>(v);
  }
  static __device__ __forceinline__ void store_half_if(Mask mask, std::byte* p, Word at, Word v) {
    if (mask) *reinterpret_cast<std::uint16_t*>(p + at) = static_cast<std::uint16_t>(v);
  }
  static __device__ __forceinline__ Quad load4(const std::byte* p, Word at) {
    const uint4 four = *reinterpret_cast<const uint4*>(p + at);
    return {{four.x, four.y, four.z, four.w}};
  }
  // Kept before the next sync() by the compiler, however long the numbers are not used: so that many loads
  // are on their way at once.
  template <int N>
  static __device__ __forceinline__ Words<N> load_words(const std::byte* p, Word at) {
    Words<N> words;
    const std::byte* const from = p + at;
    if constexpr (N == 1) {
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(words.of[0]) : "l"(from) : "memory");
    } else if constexpr (N == 2) {
      asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                   : "=r"(words.of[0]), "=r"(words.of[1])
                   : "l"(from)
                   : "memory");
    } else {
      static_assert(N % 4 == 0);
#pragma unroll
      for (int i = 0; i < N; i += 4)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.of[i]), "=r"(words.of[i + 1]), "=r"(words.of[i + 2]), "=r"(words.of[i + 3])
                     : "l"(from + 4 * i)
                     : "memory");
    }
    return words;
  }
  template <int N>
  static __device__ __forceinline__ Words<N> load_words_if(Mask mask, const std::byte* p, Word at) {
    if (mask) return load_words<N>(p, at);
    return {};
  }
  template <int N>
  static __device__ __forceinline__ void store_words_if(Mask mask, std::byte* p, Word at,
                                                        const Words<N>& words) {
    if (!mask) return;
    if constexpr (N == 1) {
      *reinterpret_cast<Word*>(p + at) = words.of[0];
    } else if constexpr (N == 2) {
      *reinterpret_cast<uint2*>(p + at) = {words.of[0], words.of[1]};
    } else {
      static_assert(N == 4);
      *reinterpret_cast<uint4*>(p + at) = {words.of[0], words.of[1], words.of[2], words.of[3]};
    }
  }
  template <int N>
  static __device__ __forceinline__ Floats<N> load_floats(const float* p, Word at) {
    Floats<N> floats;
    if constexpr (N == 1) {
      floats.of[0] = __ldg(p + at);
    } else if constexpr (N == 2) {
      const float2 two = __ldg(reinterpret_cast<const float2*>(p + at));
      floats.of[0] = two.x, floats.of[1] = two.y;
    } else {
      static_assert(N == 4);
      const float4 four = __ldg(reinterpret_cast<const float4*>(p + at));
      floats.of[0] = four.x, floats.of[1] = four.y, floats.of[2] = four.z, floats.of[3] = four.w;
    }
    return floats;
  }

  // An address of this lane's.
  struct Place {
    const std::byte* p;
  };
  static __device__ __forceinline__ Place place(const void* p, Word at) {
    return {static_cast<const std::byte*>(p) + at};
  }
  static __device__ __forceinline__ void advance(Place& place, std::uint32_t bytes) { place.p += bytes; }
  template <int N>
  static __device__ __forceinline__ Words<N> load_words(const Place& place, int on) {
    return load_words<N>(place.p + on, 0);
  }
  template <int N>
  static __device__ __forceinline__ Floats<N> load_floats(const Place& place, int on) {
    return load_floats<N>(reinterpret_cast<const float*>(place.p + on), 0);
  }

  static __device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  static __device__ __forceinline__ float sqrt(float a) { return __fsqrt_rn(a); }
  template <class T>
  static __device__ __forceinline__ T select(Mask mask, T a, T b) {
    return mask ? a : b;
  }
  static __device__ __forceinline__ float min(float a, float b) { return a < b ? a : b; }
  static __device__ __forceinline__ float max(float a, float b) { return a > b ? a : b; }
  static __device__ __forceinline__ Word bits(float a) { return __float_as_uint(a); }
  static __device__ __forceinline__ float number(Word a) { return __uint_as_float(a); }
  static __device__ __forceinline__ float from_f16(Word a) {
    return __half2float(__ushort_as_half(static_cast<std::uint16_t>(a)));
  }
  static __device__ __forceinline__ float to_float(Word a) { return static_cast<float>(a); }
  static __device__ __forceinline__ float signed_to_float(Word a) {
    return static_cast<float>(static_cast<std::int32_t>(a));
  }
  static __device__ __forceinline__ float round_even(float a) { return rintf(a); }

  template <class T>
  static __device__ __forceinline__ T shuffle(T v, Word from) {
    return __shfl_sync(~0u, v, static_cast<int>(from));
  }
  template <class T>
  static __device__ __forceinline__ T shuffle_xor(T v, std::uint32_t mask) {
    return __shfl_xor_sync(~0u, v, static_cast<int>(mask));
  }
  template <class T>
  static __device__ __forceinline__ T get(T v, std::uint32_t lane) {
    return __shfl_sync(~0u, v, static_cast<int>(lane));
  }
  static __device__ __forceinline__ std::uint32_t ballot(Mask mask) { return __ballot_sync(~0u, mask); }
  static __device__ __forceinline__ std::uint32_t ones(std::uint32_t word) {
    return static_cast<std::uint32_t>(__popc(word));
  }
  static __device__ __forceinline__ Word count(Word a) { return static_cast<Word>(__popc(a)); }
  static __device__ __forceinline__ Word permute(Word low, Word high, Word selector) {
    return __byte_perm(low, high, selector);
  }
  // Both need the units of Ampere, or later: a GPU before it is given no kernel that asks for them.
  static __device__ __forceinline__ Word bf16_pair(float even, float odd) {
    Word pair = 0;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
#else
    __trap();
#endif
    return pair;
  }
  static __device__ __forceinline__ void add_tile(float (&sums)[4], const Word (&a)[4], const Word (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();
#endif
  }
  static __device__ __forceinline__ void sync() { __syncwarp(); }

 private:
  std::uint64_t index_;
  std::uint32_t shared_;
};

}  // namespace sluice::kernels::gpu
