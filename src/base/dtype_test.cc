#include "base/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(DType, NamesAndSizesAreThoseOfSafetensors) {
  const struct {
    const char* name;
    DType type;
    std::size_t bytes;
  } rows[] = {{"BF16", DType::kBF16, 2}, {"F16", DType::kF16, 2},        {"F32", DType::kF32, 4},
              {"F64", DType::kF64, 8},   {"I8", DType::kI8, 1},          {"I16", DType::kI16, 2},
              {"I32", DType::kI32, 4},   {"I64", DType::kI64, 8},        {"U8", DType::kU8, 1},
              {"U16", DType::kU16, 2},   {"U32", DType::kU32, 4},        {"U64", DType::kU64, 8},
              {"BOOL", DType::kBool, 1}, {"F8_E4M3", DType::kF8E4M3, 1}, {"F8_E5M2", DType::kF8E5M2, 1}};
  std::set<DType> seen;
  for (const auto& row : rows) {
    EXPECT_EQ(dtype_name(row.type), row.name);
    EXPECT_EQ(dtype_bytes(row.type), row.bytes) << row.name;
    EXPECT_EQ(dtype_from_name(row.name), row.type) << row.name;
    seen.insert(row.type);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(DType::kF8E5M2) + 1);
}

TEST(DType, UnknownNamesAreNothing) {
  for (const char* name : {"", "bf16", "BF16 ", "FLOAT", "F4", "I128"})
    EXPECT_FALSE(dtype_from_name(name)) << name;
}

}  // namespace
}  // namespace sluice
