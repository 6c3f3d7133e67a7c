// Vectors as arrays of lanes, which is how Intel describes its instructions.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sluice::emulation {
namespace {

template <class T, class V>
struct Lanes {
  static constexpr std::size_t kCount = sizeof(V) / sizeof(T);
  T at[kCount];
  T& operator[](std::size_t i) { return at[i]; }
  const T& operator[](std::size_t i) const { return at[i]; }
};

template <class T, class V>
inline Lanes<T, V> lanes(const V& v) {
  Lanes<T, V> l;
  static_assert(sizeof(l) == sizeof(v));
  __builtin_memcpy(&l, &v, sizeof(v));
  return l;
}

template <class T, class V>
inline V vector(const Lanes<T, V>& l) {
  V v;
  __builtin_memcpy(&v, &l, sizeof(v));
  return v;
}

// Lane i is make(i).
template <class V, class T, class F>
inline V made(const F& make) {
  Lanes<T, V> l;
  for (std::size_t i = 0; i < l.kCount; ++i) l[i] = static_cast<T>(make(i));
  return vector(l);
}

// Applies f to each lane of one vector, of two vectors, and of three. (Not inline: otherwise kernels, which
// unroll their loops, compile twice as long.)
template <class T, class V, class F>
[[gnu::noinline]] inline V each(const V& a, const F& f) {
  const auto x = lanes<T>(a);
  return made<V, T>([&](std::size_t i) { return f(x[i]); });
}
template <class T, class V, class F>
[[gnu::noinline]] inline V each(const V& a, const V& b, const F& f) {
  const auto x = lanes<T>(a), y = lanes<T>(b);
  return made<V, T>([&](std::size_t i) { return f(x[i], y[i]); });
}
template <class T, class V, class F>
[[gnu::noinline]] inline V each(const V& a, const V& b, const V& c, const F& f) {
  const auto x = lanes<T>(a), y = lanes<T>(b), z = lanes<T>(c);
  return made<V, T>([&](std::size_t i) { return f(x[i], y[i], z[i]); });
}

// Bit i of `mask` chooses lane i of `yes`, else lane i of `no`.
template <class T, class V>
[[gnu::noinline]] inline V chosen(std::uint64_t mask, const V& yes, const V& no) {
  const auto y = lanes<T>(yes), n = lanes<T>(no);
  return made<V, T>([&](std::size_t i) { return (mask >> i & 1) != 0 ? y[i] : n[i]; });
}
template <class T, class V>
inline V kept(std::uint64_t mask, const V& yes) {
  return chosen<T>(mask, yes, V{});
}

// Bit i is test(lane i of a, of b).
template <class T, class V, class F>
inline std::uint64_t mask_of(const V& a, const V& b, const F& test) {
  const auto x = lanes<T>(a), y = lanes<T>(b);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < x.kCount; ++i) mask |= std::uint64_t{test(x[i], y[i])} << i;
  return mask;
}

// The value of type T nearest to `x`.
template <class T>
inline T saturated(std::int64_t x) {
  constexpr std::int64_t kLeast = static_cast<T>(T(-1) < T(0) ? T(1) << (8 * sizeof(T) - 1) : 0);
  constexpr std::int64_t kMost = static_cast<T>(~static_cast<T>(kLeast));
  return static_cast<T>(x < kLeast ? kLeast : x > kMost ? kMost : x);
}

// Converts lanes of one vector to lanes of another width: as many as both have; further lanes are 0.
template <class To, class T, class W, class V, class F>
inline To converted(const V& a, const F& f) {
  const auto x = lanes<T>(a);
  return made<To, W>([&](std::size_t i) { return i < x.kCount ? f(x[i]) : W{}; });
}

}  // namespace
}  // namespace sluice::emulation
