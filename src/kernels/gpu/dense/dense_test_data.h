// Operands of an operation in this process's memory, for tests: made once for each unit that computes, and
// compared afterwards.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include "device/access.h"
#include "device/space.h"
#include "kernels/gpu/gpu_test_units.h"
#include "kernels/gpu/run_dense-inl.h"
#include "kernels/ops/run-inl.h"
#include "kernels/test_data.h"

namespace sluice::kernels::gpu {

// Each ends where nothing can be read, and begins at a multiple of 16 if its bytes are one.
class Operands {
 public:
  Floats put(std::span<const float> numbers) { return {add(std::as_bytes(numbers), Kind::kNumbers)}; }
  Vector vector(std::span<const float> numbers) { return {put(numbers), numbers.size()}; }
  device::Address bytes(std::span<const std::byte> bytes) { return add(bytes, Kind::kBytes); }
  Floats scratch(std::size_t count) {  // may have any numbers afterwards
    const std::vector<float> none(count, std::nanf(""));
    return {add(std::as_bytes(std::span(none)), Kind::kScratch)};
  }

  ::testing::AssertionResult same(Operands& other) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      One &here = all_[i], &there = other.all_[i];
      if (here.kind == Kind::kBytes && std::memcmp(here.memory.data(), there.memory.data(), here.size) != 0)
        return ::testing::AssertionFailure() << "bytes of operand " << i << " differ, seed " << test_seed();
      if (here.kind != Kind::kNumbers) continue;
      const auto numbers = [](One& one) { return std::span(one.memory.floats(), one.size / sizeof(float)); };
      if (const auto result = same_bits(numbers(here), numbers(there)); !result)
        return ::testing::AssertionFailure() << "operand " << i << ": " << result.message();
    }
    return ::testing::AssertionSuccess();
  }

 private:
  enum class Kind { kNumbers, kBytes, kScratch };
  struct One {
    One(std::span<const std::byte> bytes, Kind k) : memory(bytes), size(bytes.size()), kind(k) {}
    GuardedBytes memory;
    std::size_t size;
    Kind kind;
  };
  device::Address add(std::span<const std::byte> bytes, Kind kind) {
    all_.emplace_back(bytes, kind);
    return device::host_space().address(all_.back().memory.data());
  }

  std::deque<One> all_;
};

struct OperandsPlace {
  std::byte* bytes(device::Address at, Bytes) const {
    return at ? const_cast<std::byte*>(device::host_space().pointer(at)) : nullptr;
  }
  float* floats(Floats floats, std::size_t) const { return reinterpret_cast<float*>(bytes(floats.at, 0)); }
};

// make(random, operands) gives the same operation each time, with operands of its own. The unit and the
// instruction sets of the host must leave the same.
template <class Make>
void expect_bits_of_the_host(TestUnit unit, std::mt19937_64& random, const Make& make) {
  const std::mt19937_64 start = random;
  Operands on_unit;
  const auto op = make(random, on_unit);
  run_on(unit, op);
  for (const Isa isa : {Isa::kScalar, best_isa()}) {
    std::mt19937_64 again = start;
    Operands on_host;
    run_at(Context{.pool = nullptr, .isa = isa}, OperandsPlace{}, make(again, on_host));
    EXPECT_TRUE(on_host.same(on_unit)) << isa_name(isa);
  }
}

}  // namespace sluice::kernels::gpu
