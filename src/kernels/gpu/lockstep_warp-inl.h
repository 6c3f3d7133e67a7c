// A warp as 32 lanes in arrays, each step of all lanes before the next: warp.h without a GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/float16.h"

namespace sluice::kernels::gpu {

// A value of each lane.
template <class T>
struct Lockstep {
  static constexpr int kLanes = 32;
  T of[kLanes];

  Lockstep() = default;
  Lockstep(T all) {  // NOLINT: a plain value is the same in all lanes
    for (T& lane : of) lane = all;
  }
  template <class F>
  static Lockstep make(const F& f) {
    Lockstep result;
    for (int lane = 0; lane < kLanes; ++lane) result.of[lane] = f(lane);
    return result;
  }
};

#define SLUICE_LOCKSTEP_OPERATOR(type, result, symbol)                                                 \
  inline Lockstep<result> operator symbol(const Lockstep<type>& a, const Lockstep<type>& b) {          \
    return Lockstep<result>::make([&](int l) { return static_cast<result>(a.of[l] symbol b.of[l]); }); \
  }
SLUICE_LOCKSTEP_OPERATOR(float, float, +)
SLUICE_LOCKSTEP_OPERATOR(float, float, -)
SLUICE_LOCKSTEP_OPERATOR(float, float, *)
SLUICE_LOCKSTEP_OPERATOR(float, float, /)
SLUICE_LOCKSTEP_OPERATOR(float, bool, <)
SLUICE_LOCKSTEP_OPERATOR(float, bool, >)
SLUICE_LOCKSTEP_OPERATOR(float, bool, ==)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, +)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, -)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, *)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, /)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, %)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, &)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, |)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, ^)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, <<)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, std::uint32_t, >>)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, <)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, >)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, <=)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, >=)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, ==)
SLUICE_LOCKSTEP_OPERATOR(std::uint32_t, bool, !=)
SLUICE_LOCKSTEP_OPERATOR(bool, bool, &&)
SLUICE_LOCKSTEP_OPERATOR(bool, bool, ||)
#undef SLUICE_LOCKSTEP_OPERATOR
inline Lockstep<bool> operator!(const Lockstep<bool>& a) {
  return Lockstep<bool>::make([&](int l) { return !a.of[l]; });
}

class LockstepWarp {
 public:
  using Float = Lockstep<float>;
  using Word = Lockstep<std::uint32_t>;
  using Mask = Lockstep<bool>;
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

  // `shared`: bytes of this warp.
  explicit LockstepWarp(std::uint64_t index, std::byte* shared = nullptr) : index_(index), shared_(shared) {}

  std::uint64_t index() const { return index_; }
  std::byte* shared() const { return shared_; }
  Word lane() const {
    return Word::make([](int l) { return static_cast<std::uint32_t>(l); });
  }

  template <class T>
  static Lockstep<T> load(const T* p, const Word& at) {
    return Lockstep<T>::make([&](int l) { return p[at.of[l]]; });
  }
  template <class T>
  static Lockstep<T> load_if(const Mask& mask, const T* p, const Word& at, const Lockstep<T>& other) {
    return Lockstep<T>::make([&](int l) { return mask.of[l] ? p[at.of[l]] : other.of[l]; });
  }
  template <class T>
  static void store(T* p, const Word& at, const Lockstep<T>& v) {
    for (int l = 0; l < 32; ++l) p[at.of[l]] = v.of[l];
  }
  template <class T>
  static void store_if(const Mask& mask, T* p, const Word& at, const Lockstep<T>& v) {
    for (int l = 0; l < 32; ++l)
      if (mask.of[l]) p[at.of[l]] = v.of[l];
  }
  static Word load_byte(const std::byte* p, const Word& at) {
    return Word::make([&](int l) { return std::to_integer<std::uint32_t>(p[at.of[l]]); });
  }
  static Word load_byte_if(const Mask& mask, const std::byte* p, const Word& at, const Word& other) {
    return Word::make(
        [&](int l) { return mask.of[l] ? std::to_integer<std::uint32_t>(p[at.of[l]]) : other.of[l]; });
  }
  static Word load_half(const std::byte* p, const Word& at) {  // `at` in bytes, an even number
    return Word::make([&](int l) {
      std::uint16_t half;
      std::memcpy(&half, p + at.of[l], sizeof(half));
      return std::uint32_t{half};
    });
  }
  static Word load_half_if(const Mask& mask, const std::byte* p, const Word& at, const Word& other) {
    return Word::make([&](int l) {
      if (!mask.of[l]) return other.of[l];
      std::uint16_t half;
      std::memcpy(&half, p + at.of[l], sizeof(half));
      return std::uint32_t{half};
    });
  }
  static void store_byte_if(const Mask& mask, std::byte* p, const Word& at, const Word& v) {
    for (int l = 0; l < 32; ++l)
      if (mask.of[l]) p[at.of[l]] = static_cast<std::byte>(v.of[l]);
  }
  static void store_half_if(const Mask& mask, std::byte* p, const Word& at, const Word& v) {
    for (int l = 0; l < 32; ++l) {
      const auto half = static_cast<std::uint16_t>(v.of[l]);
      if (mask.of[l]) std::memcpy(p + at.of[l], &half, sizeof(half));
    }
  }
  static Quad load4(const std::byte* p, const Word& at) {
    Quad quad;
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 4; ++i) std::memcpy(&quad.of[i].of[l], p + at.of[l] + 4 * i, 4);
    return quad;
  }
  // Where a GPU needs aligned addresses, so do these.
  template <int N>
  static Words<N> load_words(const std::byte* p, const Word& at) {
    return load_words_if<N>(Mask(true), p, at);
  }
  template <int N>
  static Words<N> load_words_if(const Mask& mask, const std::byte* p, const Word& at) {
    Words<N> words;
    for (int l = 0; l < 32; ++l) {
      if (mask.of[l]) check_aligned(p + at.of[l], sizeof(std::uint32_t) * (N < 4 ? N : 4));
      for (int i = 0; i < N; ++i) {
        words.of[i].of[l] = 0;
        if (mask.of[l]) std::memcpy(&words.of[i].of[l], p + at.of[l] + 4 * i, 4);
      }
    }
    return words;
  }
  template <int N>
  static void store_words_if(const Mask& mask, std::byte* p, const Word& at, const Words<N>& words) {
    for (int l = 0; l < 32; ++l) {
      if (!mask.of[l]) continue;
      check_aligned(p + at.of[l], sizeof(std::uint32_t) * N);
      for (int i = 0; i < N; ++i) std::memcpy(p + at.of[l] + 4 * i, &words.of[i].of[l], 4);
    }
  }
  template <int N>
  static Floats<N> load_floats(const float* p, const Word& at) {
    Floats<N> floats;
    for (int l = 0; l < 32; ++l) {
      check_aligned(p + at.of[l], sizeof(float) * N);
      for (int i = 0; i < N; ++i) floats.of[i].of[l] = p[at.of[l] + static_cast<std::uint32_t>(i)];
    }
    return floats;
  }

  struct Place {
    const std::byte* p;
    Word at;
  };
  static Place place(const void* p, const Word& at) { return {static_cast<const std::byte*>(p), at}; }
  static void advance(Place& place, std::uint32_t bytes) { place.p += bytes; }
  template <int N>
  static Words<N> load_words(const Place& place, int on) {
    return load_words<N>(place.p + on, place.at);
  }
  template <int N>
  static Floats<N> load_floats(const Place& place, int on) {
    Floats<N> floats;
    const Words<N> words = load_words<N>(place, on);
    for (int i = 0; i < N; ++i) floats.of[i] = number(words.of[i]);
    return floats;
  }

  static Float fma(const Float& a, const Float& b, const Float& c) {
    return Float::make([&](int l) { return std::fma(a.of[l], b.of[l], c.of[l]); });
  }
  static Float sqrt(const Float& a) {
    return Float::make([&](int l) { return std::sqrt(a.of[l]); });
  }
  template <class T>
  static Lockstep<T> select(const Mask& mask, const Lockstep<T>& a, const Lockstep<T>& b) {
    return Lockstep<T>::make([&](int l) { return mask.of[l] ? a.of[l] : b.of[l]; });
  }
  static Float min(const Float& a, const Float& b) { return select(a < b, a, b); }
  static Float max(const Float& a, const Float& b) { return select(a > b, a, b); }
  static Word bits(const Float& a) {
    return Word::make([&](int l) { return std::bit_cast<std::uint32_t>(a.of[l]); });
  }
  static Float number(const Word& a) {
    return Float::make([&](int l) { return std::bit_cast<float>(a.of[l]); });
  }
  static Float from_f16(const Word& a) {
    return Float::make([&](int l) { return fp16_to_float(static_cast<std::uint16_t>(a.of[l])); });
  }
  static Float to_float(const Word& a) {
    return Float::make([&](int l) { return static_cast<float>(a.of[l]); });
  }
  static Float signed_to_float(const Word& a) {  // two's complement
    return Float::make([&](int l) { return static_cast<float>(static_cast<std::int32_t>(a.of[l])); });
  }
  static Float round_even(const Float& a) {
    return Float::make([&](int l) { return std::nearbyint(a.of[l]); });
  }

  template <class T>
  static Lockstep<T> shuffle(const Lockstep<T>& v, const Word& from) {
    return Lockstep<T>::make([&](int l) { return v.of[from.of[l] % 32]; });
  }
  template <class T>
  static Lockstep<T> shuffle_xor(const Lockstep<T>& v, std::uint32_t mask) {
    return Lockstep<T>::make([&](int l) { return v.of[static_cast<std::uint32_t>(l) ^ mask]; });
  }
  template <class T>
  static T get(const Lockstep<T>& v, std::uint32_t lane) {
    return v.of[lane];
  }
  static std::uint32_t ballot(const Mask& mask) {
    std::uint32_t word = 0;
    for (int l = 0; l < 32; ++l) word |= std::uint32_t{mask.of[l]} << l;
    return word;
  }
  static std::uint32_t ones(std::uint32_t word) { return static_cast<std::uint32_t>(std::popcount(word)); }
  static Word count(const Word& a) {
    return Word::make([&](int l) { return static_cast<std::uint32_t>(std::popcount(a.of[l])); });
  }
  static Word permute(const Word& low, const Word& high, const Word& selector) {
    return Word::make([&](int l) {
      const std::uint64_t bytes = low.of[l] | std::uint64_t{high.of[l]} << 32;
      std::uint32_t result = 0;
      for (unsigned i = 0; i < 4; ++i)
        result |= static_cast<std::uint32_t>(bytes >> 8 * (selector.of[l] >> 4 * i & 7) & 0xff) << 8 * i;
      return result;
    });
  }
  static Word bf16_pair(const Float& even, const Float& odd) {
    return Word::make([&](int l) {
      return std::uint32_t{float_to_bf16(even.of[l])} | std::uint32_t{float_to_bf16(odd.of[l])} << 16;
    });
  }
  // Sums of a GPU's unit have an order that is not told: these are exact but for one rounding.
  static void add_tile(Float (&sums)[4], const Word (&a)[4], const Word (&b)[2]) {
    const auto number = [](const Word& words, int lane, int column) {
      const std::uint32_t pair = words.of[lane];
      return double{std::bit_cast<float>(column % 2 == 0 ? pair << 16 : pair & 0xffff0000u)};
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = sums[i].of[lane];
        for (int k = 0; k < 16; ++k) {
          const int thread = k % 8 / 2;
          sum += number(a[k / 8 * 2 + row / 8], row % 8 * 4 + thread, k) *
                 number(b[k / 8], column * 4 + thread, k);
        }
        sums[i].of[lane] = static_cast<float>(sum);
      }
    }
  }
  static void sync() {}

 private:
  static void check_aligned(const void* p, std::size_t bytes) {
    if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0) std::abort();
  }

  std::uint64_t index_;
  std::byte* shared_;
};

}  // namespace sluice::kernels::gpu
