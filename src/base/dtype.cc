#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace sluice {
namespace {

struct Row {
  DType type;
  std::string_view name;  // as in the header of a safetensors file
  std::size_t bytes;      // bytes of one element
};

constexpr std::array kRows = {
    Row{DType::kBF16, "BF16", 2}, Row{DType::kF16, "F16", 2},        Row{DType::kF32, "F32", 4},
    Row{DType::kF64, "F64", 8},   Row{DType::kI8, "I8", 1},          Row{DType::kI16, "I16", 2},
    Row{DType::kI32, "I32", 4},   Row{DType::kI64, "I64", 8},        Row{DType::kU8, "U8", 1},
    Row{DType::kU16, "U16", 2},   Row{DType::kU32, "U32", 4},        Row{DType::kU64, "U64", 8},
    Row{DType::kBool, "BOOL", 1}, Row{DType::kF8E4M3, "F8_E4M3", 1}, Row{DType::kF8E5M2, "F8_E5M2", 1},
};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].type) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(DType::kF8E5M2) + 1;
}
static_assert(rows_follow_the_enum());

const Row& row(DType type) {
  const auto index = static_cast<std::size_t>(type);
  SLUICE_CHECK(index < kRows.size(), std::to_string(index));
  return kRows[index];
}

}  // namespace

std::size_t dtype_bytes(DType type) { return row(type).bytes; }

std::string_view dtype_name(DType type) { return row(type).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace sluice
