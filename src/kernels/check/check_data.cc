#include "kernels/check/check_data.h"

#include <bit>
#include <cstring>

#include "base/splitmix64.h"

namespace sluice::kernels {

std::vector<float> sample(std::size_t n, std::uint64_t seed) {
  std::vector<float> numbers(n);
  SplitMix64 random(seed);
  for (float& number : numbers)
    number = static_cast<float>(static_cast<std::int32_t>(random.next() >> 32)) * 0x1p-30f;
  return numbers;
}

std::vector<std::byte> weights_of(DType dtype, std::size_t n, std::uint64_t seed) {
  const std::vector<float> numbers = sample(n, seed);
  std::vector<std::byte> bytes(n * dtype_bytes(dtype));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(numbers[i]);
    if (dtype == DType::kF32) {
      std::memcpy(&bytes[4 * i], &bits, 4);
    } else {
      const auto word = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(&bytes[2 * i], &word, 2);
    }
  }
  return bytes;
}

std::vector<std::byte> blocks_of(const codec::MatrixFormat& format, codec::MatrixShape shape,
                                 std::size_t plane) {
  std::vector<std::byte> bytes(format.plane_bytes(shape, plane));
  SplitMix64 random(4 + plane);
  // Without this bit every byte is part of a scale that is a number, and not a large one.
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next()) & std::byte{0xbf};
  return bytes;
}

}  // namespace sluice::kernels
