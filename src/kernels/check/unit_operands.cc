#include "kernels/check/unit_operands.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "device/space.h"
#include "kernels/check/check_data.h"

namespace sluice::kernels {

std::span<std::byte> UnitOperands::bytes() { return std::as_writable_bytes(std::span(lines_)).first(used_); }

device::Address UnitOperands::put(std::span<const std::byte> bytes, std::size_t offset) {
  const std::size_t at = round_up(used_, 256) + offset;
  SLUICE_CHECK(at + bytes.size() <= kBytes, std::to_string(at + bytes.size()));
  used_ = at + bytes.size();
  std::byte* const here = this->bytes().data();
  std::copy(bytes.begin(), bytes.end(), here + at);
  return (there_ ? there_ : device::host_space().address(here)) + at;
}

Floats UnitOperands::numbers(std::size_t count) {
  const std::vector<float> numbers = sample(count, ++seed_);
  return {put(std::as_bytes(std::span(numbers)))};
}

Floats UnitOperands::room(std::size_t count) {
  const std::vector<float> none(count);
  const Floats at{put(std::as_bytes(std::span(none)))};
  rooms_.push_back({used_ - count * sizeof(float), used_});
  return at;
}

const codec::MatrixRef& UnitOperands::matrix(const codec::MatrixFormat& format, std::size_t rows,
                                             std::size_t columns, std::size_t offset) {
  if (&format == &codec::kFormatPacked) return packed(rows, columns, offset);
  codec::MatrixRef& matrix = matrices_.emplace_back();
  matrix.format = &format;
  matrix.shape = {rows, columns};
  for (std::size_t plane = 0; plane < format.plane_count(); ++plane)
    matrix.planes[plane] = put(format.words ? weights_of(*format.words, rows * columns, ++seed_)
                                            : blocks_of(format, matrix.shape, plane),
                               offset);
  return matrix;
}

const codec::MatrixRef& UnitOperands::packed(std::size_t rows, std::size_t columns, std::size_t offset) {
  const codec::TileShape shape{rows, columns};
  std::vector<std::byte> exponents(shape.places()), sign_mantissas(shape.places());
  codec::split_tiles(weights_of(DType::kBF16, rows * columns, ++seed_), shape, exponents, sign_mantissas);
  const std::vector<std::byte> coded = codec::encode_native(exponents, shape);
  chunks_.push_back({0, coded.size(), 0, shape.places(), 0, true});
  codec::MatrixRef& matrix = matrices_.emplace_back();
  matrix.format = &codec::kFormatPacked;
  matrix.shape = {rows, columns};
  matrix.planes = {put(sign_mantissas, offset), put(coded, offset)};
  matrix.chunks = {&chunks_.back(), 1};
  return matrix;
}

CacheRows UnitOperands::cache(DType dtype, std::size_t rows, std::size_t heads, std::size_t columns,
                              const std::uint32_t* blocks) {
  CacheRows cache{.dtype = dtype,
                  .rows = rows,
                  .row_elements = heads * columns,
                  .heads = heads,
                  .columns = columns,
                  .blocks = blocks};
  if (dtype != DType::kI8) {
    cache.data = put(weights_of(dtype, rows * heads * columns, ++seed_));
    return cache;
  }
  // Bytes of numbers are codes as any others.
  cache.data = put(weights_of(DType::kBF16, rows * heads * columns / 2, ++seed_));
  cache.scales = numbers(heads * cache_groups(columns) * rows).at;
  return cache;
}

bool UnitOperands::same(std::span<const std::byte> found) {
  const std::span<const std::byte> own = bytes();
  return each_kept(found, [&](std::size_t begin, std::size_t end) {
    return std::memcmp(own.data() + begin, found.data() + begin, end - begin) == 0;
  });
}

bool UnitOperands::near(std::span<const std::byte> found) {
  constexpr double kMost = 1e-3;  // share of the squares of what differs: 3 %
  const std::span<const std::byte> own = bytes();
  double error = 0, size = 0;
  each_kept(found, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = round_up(begin, sizeof(float)); at + sizeof(float) <= end; at += sizeof(float)) {
      float here = 0, there = 0;
      std::memcpy(&here, own.data() + at, sizeof(here));
      std::memcpy(&there, found.data() + at, sizeof(there));
      if (std::memcmp(&here, &there, sizeof(here)) == 0) continue;
      error += (double{there} - here) * (double{there} - here);
      size += double{here} * here;
    }
    return true;
  });
  return error <= kMost * size;  // not if one is no number
}

// Calls check(begin, end) for what is no room, until one says no; returns whether none did.
bool UnitOperands::each_kept(std::span<const std::byte> found,
                             FunctionRef<bool(std::size_t, std::size_t)> check) {
  SLUICE_CHECK(found.size() == bytes().size(), std::to_string(found.size()));
  std::size_t begin = 0;
  for (const Range& room : rooms_) {
    if (!check(begin, room.begin)) return false;
    begin = room.end;
  }
  return check(begin, found.size());
}

}  // namespace sluice::kernels
