#include "codec/exponents/entropy.h"

#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"

namespace sluice::codec {
namespace {

// Four tables, because neighbours are often equal and a single counter would wait for its own last store.
constexpr std::size_t kLanes = 4;

template <class ExponentAt>
void tally(std::array<std::uint64_t, 256>& counts, std::size_t elements, const ExponentAt& exponent_at) {
  std::array<std::array<std::uint64_t, 256>, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= elements; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) ++lanes[lane][exponent_at(i + lane)];
  }
  for (; i < elements; ++i) ++lanes[0][exponent_at(i)];
  for (const auto& lane : lanes) {
    for (std::size_t e = 0; e < 256; ++e) counts[e] += lane[e];
  }
}

}  // namespace

void ExponentHistogram::add_words(std::span<const std::byte> words) {
  SLUICE_CHECK(words.size() % 2 == 0, std::to_string(words.size()));
  tally(counts_, words.size() / 2, [&](std::size_t i) {
    const unsigned low = std::to_integer<unsigned>(words[2 * i]);
    const unsigned high = std::to_integer<unsigned>(words[2 * i + 1]);
    return (high << 1 | low >> 7) & 0xffu;
  });
}

void ExponentHistogram::add_exponents(std::span<const std::byte> exponents) {
  tally(counts_, exponents.size(), [&](std::size_t i) { return std::to_integer<unsigned>(exponents[i]); });
}

ExponentHistogram& ExponentHistogram::operator+=(const ExponentHistogram& other) {
  for (std::size_t e = 0; e < 256; ++e) counts_[e] += other.counts_[e];
  return *this;
}

std::uint64_t ExponentHistogram::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double ExponentHistogram::entropy_bits() const {
  const double all = static_cast<double>(total());
  double bits = 0;
  for (const std::uint64_t n : counts_) {
    if (n == 0) continue;
    const double p = static_cast<double>(n) / all;
    bits -= p * std::log2(p);
  }
  return bits > 0 ? bits : 0;  // turns −0 into 0
}

}  // namespace sluice::codec
