#include "golden_writer/seeded_noise.h"

namespace sluice::golden {

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// A sum of twelve uniform numbers of 16 bits has deviation 2^16 (but for one part in 2^33).
double SeededNoise::next() {
  constexpr int kWords = 3;
  constexpr std::int64_t kMean = 12 * 0xffff / 2;
  std::int64_t sum = -kMean;
  for (int word = 0; word < kWords; ++word) {
    const std::uint64_t bits = words_.next();
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>(bits >> shift & 0xffff);
  }
  return static_cast<double>(sum) / 65536.0;
}

}  // namespace sluice::golden
