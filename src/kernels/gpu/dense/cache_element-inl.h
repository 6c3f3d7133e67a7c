// Elements of key/value caches as a warp reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Each type has kBytes, kCodes (its numbers are codes with scales), and
//   raw_if(warp, mask, p, at)       the element at p + at bytes, or zero
//   number(warp, raw)
//   eight(warp, p, at, numbers)     eight neighbours from p + at bytes on, a multiple of 16 (of codes: of 4)
struct CacheBf16 {
  static constexpr std::uint32_t kBytes = 2;
  static constexpr bool kCodes = false;
  template <class Warp>
  static SLUICE_GPU typename Warp::Word raw_if(const Warp& warp, typename Warp::Mask mask, const std::byte* p,
                                               typename Warp::Word at) {
    return warp.load_half_if(mask, p, at, typename Warp::Word(0));
  }
  template <class Warp>
  static SLUICE_GPU typename Warp::Float number(const Warp& warp, typename Warp::Word raw) {
    return warp.number(raw << typename Warp::Word(16));
  }
  template <class Warp>
  static SLUICE_GPU void eight(const Warp& warp, const std::byte* p, typename Warp::Word at,
                               typename Warp::Float (&numbers)[8]) {
    using Word = typename Warp::Word;
    const auto words = warp.load4(p, at);
    SLUICE_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      numbers[2 * i] = warp.number(words.of[i] << Word(16));
      numbers[2 * i + 1] = warp.number(words.of[i] & Word(0xffff0000u));
    }
  }
};

struct CacheF32 {
  static constexpr std::uint32_t kBytes = 4;
  static constexpr bool kCodes = false;
  template <class Warp>
  static SLUICE_GPU typename Warp::Word raw_if(const Warp& warp, typename Warp::Mask mask, const std::byte* p,
                                               typename Warp::Word at) {
    using Word = typename Warp::Word;
    return warp.load_if(mask, reinterpret_cast<const std::uint32_t*>(p), at >> Word(2), Word(0));
  }
  template <class Warp>
  static SLUICE_GPU typename Warp::Float number(const Warp& warp, typename Warp::Word raw) {
    return warp.number(raw);
  }
  template <class Warp>
  static SLUICE_GPU void eight(const Warp& warp, const std::byte* p, typename Warp::Word at,
                               typename Warp::Float (&numbers)[8]) {
    SLUICE_GPU_UNROLL
    for (int four = 0; four < 2; ++four) {
      const auto words = warp.load4(p + 16 * four, at);
      SLUICE_GPU_UNROLL
      for (int i = 0; i < 4; ++i) numbers[4 * four + i] = warp.number(words.of[i]);
    }
  }
};

struct CacheI8 {
  static constexpr std::uint32_t kBytes = 1;
  static constexpr bool kCodes = true;
  template <class Warp>
  static SLUICE_GPU typename Warp::Word raw_if(const Warp& warp, typename Warp::Mask mask, const std::byte* p,
                                               typename Warp::Word at) {
    return warp.load_byte_if(mask, p, at, typename Warp::Word(0));
  }
  template <class Warp>
  static SLUICE_GPU typename Warp::Float number(const Warp& warp, typename Warp::Word raw) {
    using Word = typename Warp::Word;
    return warp.signed_to_float((raw ^ Word(0x80)) - Word(0x80));
  }
  template <class Warp>
  static SLUICE_GPU void eight(const Warp& warp, const std::byte* p, typename Warp::Word at,
                               typename Warp::Float (&numbers)[8]) {
    using Word = typename Warp::Word;
    SLUICE_GPU_UNROLL
    for (std::uint32_t four = 0; four < 2; ++four) {
      const Word word = warp.load(reinterpret_cast<const std::uint32_t*>(p) + four, at >> Word(2));
      SLUICE_GPU_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i)
        numbers[4 * four + i] = number(warp, (word >> Word(8 * i)) & Word(0xff));
    }
  }
};

}  // namespace sluice::kernels::gpu
