// Inputs and comparisons shared by the tests of this folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/machine/cpu.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Printed; set SLUICE_TEST_SEED to repeat a failure.
inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("SLUICE_TEST_SEED");
    const std::uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    std::cout << "SLUICE_TEST_SEED=" << value << std::endl;
    return value;
  }();
  return seed;
}

inline std::mt19937_64 test_random(std::uint64_t salt) { return std::mt19937_64(test_seed() + salt); }

inline std::vector<float> normal_floats(std::mt19937_64& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(n);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// Some normal numbers and some arbitrary words: zeros of both signs, subnormals, infinities, NaN, huge, tiny.
inline std::vector<float> wild_floats(std::mt19937_64& random, std::size_t n) {
  static constexpr std::uint32_t kWords[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff,
                                             0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                             0x7f7fffff, 0x00800000, 0x0b000000, 0x33800000};
  std::vector<float> numbers = normal_floats(random, n);
  for (float& number : numbers) {
    const std::uint64_t dice = random();
    if (dice % 16 == 0) number = std::bit_cast<float>(kWords[dice / 16 % std::size(kWords)]);
  }
  return numbers;
}

// Truncates; only for making inputs.
inline std::uint16_t float_to_fp16_word(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 112;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (exponent >= 31) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (exponent <= 0) return static_cast<std::uint16_t>(sign | (bits >> 17 & 0x3ffu));  // some subnormal
  return static_cast<std::uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ffu));
}

inline std::vector<std::byte> encode(std::span<const float> numbers, DType dtype) {
  std::vector<std::byte> bytes(numbers.size() * dtype_bytes(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(&bytes[4 * i], &numbers[i], 4);
    } else {
      const std::uint16_t word =
          dtype == DType::kBF16 ? float_to_bf16(numbers[i]) : float_to_fp16_word(numbers[i]);
      std::memcpy(&bytes[2 * i], &word, 2);
    }
  }
  return bytes;
}

inline float decode(const std::byte* data, DType dtype, std::size_t i) {
  float number;
  std::uint16_t word;
  if (dtype == DType::kF32) {
    std::memcpy(&number, data + 4 * i, 4);
    return number;
  }
  std::memcpy(&word, data + 2 * i, 2);
  return dtype == DType::kBF16 ? bf16_to_float(word) : fp16_to_float(word);
}

inline std::vector<Isa> vector_isas() {
  std::vector<Isa> isas = available_isas();
  std::erase(isas, Isa::kScalar);
  return isas;
}

// Equal bits, where any NaN equals any NaN.
inline ::testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> found) {
  if (expected.size() != found.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(found[i])) {
      return ::testing::AssertionFailure()
             << "at " << i << " of " << expected.size() << ": expected " << expected[i] << ", found "
             << found[i] << ", seed " << test_seed();
    }
  }
  return ::testing::AssertionSuccess();
}

// A copy of `bytes` that ends where an unreadable page begins, and (room permitting) starts after another.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes.size() + page - 1) / page * page;
    size_ = inside + 2 * page;
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    data_ = base_ + page + (inside - bytes.size());
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
    if (::mprotect(base_, page, PROT_NONE) != 0 || ::mprotect(base_ + page + inside, page, PROT_NONE) != 0) {
      std::abort();
    }
  }
  ~GuardedBytes() { ::munmap(base_, size_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() { return data_; }
  float* floats() { return reinterpret_cast<float*>(data_); }

 private:
  std::byte* base_;
  std::byte* data_;
  std::size_t size_;
};

inline std::span<const std::byte> bytes_of(std::span<const float> numbers) { return std::as_bytes(numbers); }

}  // namespace sluice::kernels
