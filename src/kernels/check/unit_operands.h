// Operands of one operation, made alike for this process and for a unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "codec/matrix_format.h"
#include "device/address.h"
#include "kernels/ops/floats.h"

namespace sluice::kernels {

// A stretch of memory as it is to be before the operation. A caller who asks for the same operands in the
// same order gets the same bytes at the same distances. Not copied.
class UnitOperands {
 public:
  static constexpr Bytes kBytes = 2 * kMiB;  // at the most

  UnitOperands() = default;  // they lie here
  explicit UnitOperands(device::Address there) : there_(there) {}
  UnitOperands(const UnitOperands&) = delete;
  UnitOperands& operator=(const UnitOperands&) = delete;

  Floats numbers(std::size_t count);
  Vector vector(std::size_t count) { return {numbers(count), count}; }
  // What the operation may leave as it likes.
  Floats room(std::size_t count);
  // Planes begin this many bytes behind a multiple of 256. It lives as long as this.
  const codec::MatrixRef& matrix(const codec::MatrixFormat& format, std::size_t rows, std::size_t columns,
                                 std::size_t offset = 0);
  CacheRows cache(DType dtype, std::size_t rows, std::size_t heads, std::size_t columns,
                  const std::uint32_t* blocks = nullptr);

  std::span<std::byte> bytes();
  // What is not room has the same bytes.
  bool same(std::span<const std::byte> found);
  // As same(), but that numbers may be others, if these are as near as products of rounded numbers are.
  bool near(std::span<const std::byte> found);

 private:
  struct Range {
    std::size_t begin, end;
  };
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  bool each_kept(std::span<const std::byte> found, FunctionRef<bool(std::size_t, std::size_t)> check);
  device::Address put(std::span<const std::byte> bytes, std::size_t offset = 0);
  const codec::MatrixRef& packed(std::size_t rows, std::size_t columns, std::size_t offset);

  std::vector<Line> lines_ = std::vector<Line>(kBytes / sizeof(Line));
  device::Address there_ = {};  // null: here
  std::size_t used_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Range> rooms_;  // ascending
  std::deque<codec::MatrixRef> matrices_;
  std::deque<codec::PlaneChunk> chunks_;
};

}  // namespace sluice::kernels
