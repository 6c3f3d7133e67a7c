// Operands of operations in host memory, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "codec/matrix_format.h"
#include "device/access.h"
#include "device/space.h"
#include "kernels/ops/floats.h"
#include "kernels/products/blocks/block_data.h"
#include "kernels/products/packed/packed_test_data.h"
#include "kernels/test_data.h"

namespace sluice::kernels::gpu {

// Lets operations reach this process's memory.
class OpenGate final : public device::Gate {
 public:
  void admit_this_thread() override {}
  void dismiss_this_thread() override {}

 private:
  void open() override {}
  void close() override {}
  std::byte* data(device::Address address, Bytes) const override {
    return const_cast<std::byte*>(device::host_space().pointer(address));
  }
};

// A matrix of some format with random content. Nothing behind planes whose length follows from the shape
// can be read.
class TestMatrix {
 public:
  TestMatrix(std::mt19937_64& random, const codec::MatrixFormat& format, std::size_t rows,
             std::size_t columns, bool wild, std::size_t offset = 0) {
    const auto numbers = [&] {
      return wild ? wild_floats(random, rows * columns) : normal_floats(random, rows * columns);
    };
    ref_.format = &format;
    ref_.shape = {rows, columns};
    if (&format == &codec::kFormatPacked) {
      packed_ = std::make_unique<Packed>(pack_numbers(random, rows, columns, numbers()));
      ref_ = packed_->weight();
      add(packed_->sign_mantissas, offset);
      add(packed_->exponents, offset);
    } else if (format.words) {
      add(encode(numbers(), *format.words), offset);
    } else {
      const auto blocks =
          std::ranges::find(all_blocks(), &format, [](const Blocks& each) { return &each.format; });
      for (std::size_t plane = 0; plane < format.plane_count(); ++plane) {
        std::vector<std::byte> bytes(format.plane_bytes(ref_.shape, plane));
        fill_blocks(*blocks, plane, wild ? BlockScales::kAny : BlockScales::kAlike, random, bytes);
        add(bytes, offset);
      }
    }
  }
  const codec::MatrixRef& ref() const { return ref_; }

 private:
  // So that the plane begins `offset` bytes behind a multiple of 16, if its end may lie 15 bytes from the
  // guard.
  void add(const std::vector<std::byte>& plane, std::size_t offset) {
    std::vector<std::byte> padded = plane;
    padded.resize(plane.size() + (32 - offset - plane.size() % 16) % 16);
    guarded_.push_back(std::make_unique<GuardedBytes>(padded));
    ref_.planes[guarded_.size() - 1] = device::host_space().address(guarded_.back()->data());
  }

  codec::MatrixRef ref_;
  std::unique_ptr<Packed> packed_;
  std::vector<std::unique_ptr<GuardedBytes>> guarded_;
};

inline Floats floats_of(const std::vector<float>& numbers) {
  return {device::host_space().address(reinterpret_cast<const std::byte*>(numbers.data()))};
}
inline Vector vector_of(const std::vector<float>& numbers) { return {floats_of(numbers), numbers.size()}; }

}  // namespace sluice::kernels::gpu
