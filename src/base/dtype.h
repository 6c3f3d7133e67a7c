// Element types of checkpoint tensors, as safetensors names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class DType : std::uint8_t {
  kBF16,
  kF16,
  kF32,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kF8E4M3,
  kF8E5M2
};

std::size_t dtype_bytes(DType type);
std::string_view dtype_name(DType type);                      // "BF16"
std::optional<DType> dtype_from_name(std::string_view name);  // empty for an unknown name

}  // namespace sluice
