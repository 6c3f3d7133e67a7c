// SplitMix64 (Steele, Lea, Flood, 2014): a small generator whose numbers are the same on every machine.
#pragma once

#include <cstdint>

namespace sluice {

// Step of the generator's state; also a constant for hashing (2^64 over the golden ratio, odd).
inline constexpr std::uint64_t kSplitMix64Step = 0x9e3779b97f4a7c15u;

// The generator's output for a state: a bijection that mixes all bits.
constexpr std::uint64_t splitmix64_mixed(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  return state ^ (state >> 31);
}

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return splitmix64_mixed(state_ += kSplitMix64Step); }

 private:
  std::uint64_t state_;
};

}  // namespace sluice
