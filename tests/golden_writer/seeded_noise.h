// Random numbers of the tiny golden models: the same bits on every machine and from every compiler.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/splitmix64.h"

namespace sluice::golden {

std::uint64_t fnv1a64(std::string_view text);

// The numbers of one tensor, in order of its elements: mean 0, deviation 1, nearly normal, between -6 and 6,
// and multiples of 2^-16, so that a double holds each exactly. tools/oracle/README.md ("Weights from a seed")
// defines them; tools/oracle/seeded_weights.py is the other implementation.
class SeededNoise {
 public:
  // `key` is the tensor's name, or the name of the tensor that it is a copy of.
  SeededNoise(std::uint64_t seed, std::string_view key) : words_(splitmix64_mixed(seed) ^ fnv1a64(key)) {}

  double next();

 private:
  SplitMix64 words_;
};

}  // namespace sluice::golden
