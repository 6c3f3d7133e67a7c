// The three storage types of published checkpoints as fp32: BF16, IEEE binary16, and fp32 itself.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice {

inline float bf16_to_float(std::uint16_t word) { return std::bit_cast<float>(std::uint32_t{word} << 16); }

// Round to nearest, ties to even; NaN stays NaN (quiet).
inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Exact for every binary16 word, subnormals, infinities and NaN payloads included.
inline float fp16_to_float(std::uint16_t word) {
  const std::uint32_t sign = std::uint32_t{word & 0x8000u} << 16;
  const std::uint32_t exponent = (word >> 10) & 0x1fu;
  std::uint32_t mantissa = word & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  std::uint32_t shift = static_cast<std::uint32_t>(std::countl_zero(mantissa)) - 21u;  // to make bit 10 lead
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | ((113u - shift) << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even; values of 65520 or more become infinite, NaN stays NaN (quiet).
inline std::uint16_t double_to_fp16(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000u);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ffu) - 1023;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 1024 && fraction != 0) return sign | 0x7e00u;
  if (exponent > 15) return sign | 0x7c00u;
  if (exponent < -25) return sign;  // below half of the smallest subnormal, as are subnormal doubles
  const int below = exponent < -14 ? -14 - exponent : 0;
  const std::uint64_t mantissa = fraction | std::uint64_t{1} << 52;
  const int shift = 42 + below;
  const std::uint64_t kept = mantissa >> shift, rest = mantissa & ((std::uint64_t{1} << shift) - 1),
                      half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
  // The leading bit of the mantissa adds 1 to the exponent's field, and so does a carry, up to infinity.
  const auto field = static_cast<std::uint64_t>(below > 0 ? 0 : exponent + 14);
  return static_cast<std::uint16_t>(sign | ((field << 10) + rounded));
}

}  // namespace sluice
