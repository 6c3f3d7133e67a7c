// Where the tests of this folder run kernels: in lockstep here, and on a CUDA device if there is one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "kernels/gpu/cuda/cuda_bed.h"
#include "kernels/gpu/gpu_test_data.h"
#include "kernels/gpu/lockstep_launcher.h"

namespace sluice::kernels::gpu {

enum class TestUnit { kLockstep, kCuda };

inline std::string unit_name(TestUnit unit) { return unit == TestUnit::kLockstep ? "Lockstep" : "Cuda"; }
inline void PrintTo(TestUnit unit, std::ostream* out) { *out << unit_name(unit); }
inline auto test_units() { return ::testing::Values(TestUnit::kLockstep, TestUnit::kCuda); }
inline std::string unit_of_test(const ::testing::TestParamInfo<TestUnit>& info) {
  return unit_name(info.param);
}

// One of each kind for all tests of a process; null: there is no device.
struct TestBed {
  explicit TestBed(const GpuKernelOptions& kernels) : bed(CudaBed::make(Bytes{1} << 30, kernels, why)) {}
  std::string why;
  std::unique_ptr<CudaBed> bed;
};
inline CudaBed* test_bed(std::string* why = nullptr) {
  static const TestBed bed(GpuKernelOptions{});
  if (why != nullptr) *why = bed.why;
  return bed.bed.get();
}
inline constexpr GpuKernelOptions kWithRoom{.room = 200 * kKiB}, kFast{.math = DeviceMath::kFast};
inline CudaBed* test_bed_with(const GpuKernelOptions& options) {
  static const TestBed room(kWithRoom), fast(kFast);
  return options.math == DeviceMath::kFast ? fast.bed.get() : options.room > 0 ? room.bed.get() : test_bed();
}

// Runs an operation, or a list of MLPs, whose operands are here. Throws what the kernels report.
// `options`: none, or one of the above.
template <class Op>
void run_on(TestUnit unit, const Op& op, const GpuKernelOptions& options = {}) {
  if (unit == TestUnit::kCuda) {
    CudaBed& bed = *test_bed_with(options);
    bed.run([&](UnitKernels& kernels, const device::Access& access) { kernels.run(access, op); });
    return;
  }
  OpenGate gate;
  const device::Access access(gate);
  LockstepLauncher launcher(options);
  run(launcher, access, op);
  launcher.finish(access);
}

class OnUnits : public ::testing::TestWithParam<TestUnit> {
 protected:
  void SetUp() override {
    std::string why;
    if (GetParam() == TestUnit::kCuda && test_bed(&why) == nullptr)
      GTEST_SKIP() << "no CUDA device, so no kernel was run on one: " << why;
  }
};

}  // namespace sluice::kernels::gpu
