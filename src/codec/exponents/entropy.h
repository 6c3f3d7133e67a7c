// The lower bound for compressing the exponents of BF16 words with a code without memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::codec {

// Counts of the 256 exponents. Thread-compatible; histograms of parts can be added.
class ExponentHistogram {
 public:
  void add_words(std::span<const std::byte> words);  // BF16, little-endian, 2 bytes each; any alignment
  void add_exponents(std::span<const std::byte> exponents);  // an exponent plane
  ExponentHistogram& operator+=(const ExponentHistogram& other);

  std::uint64_t count(std::uint8_t exponent) const { return counts_[exponent]; }
  std::uint64_t total() const;
  // Order-0 entropy in bits per exponent, 0 to 8; 0 when empty. A lossless store of words with this entropy
  // needs (8 + bits) / 16 of their bytes (SPEC 1.2; about 2.6 bits in trained models).
  double entropy_bits() const;

 private:
  std::array<std::uint64_t, 256> counts_{};
};

}  // namespace sluice::codec
