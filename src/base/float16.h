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

}  // namespace sluice
