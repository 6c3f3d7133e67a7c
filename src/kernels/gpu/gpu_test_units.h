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

// One for all tests of a process; null: there is no device.
struct TestBed {
  explicit TestBed(Bytes kernel_room) : bed(CudaBed::make(Bytes{1} << 30, kernel_room, why)) {}
  std::string why;
  std::unique_ptr<CudaBed> bed;
};
inline CudaBed* test_bed(std::string* why = nullptr) {
  static const TestBed bed(0);
  if (why != nullptr) *why = bed.why;
  return bed.bed.get();
}
// Whose kernels have kTestRoom for words of packed matrices.
inline constexpr Bytes kTestRoom = 200 * kKiB;
inline CudaBed* test_bed_with_room() {
  static const TestBed bed(kTestRoom);
  return bed.bed.get();
}

// Runs an operation, or a list of MLPs, whose operands are here. Throws what the kernels report. `room`: the
// kernels have kTestRoom.
template <class Op>
void run_on(TestUnit unit, const Op& op, bool room = false) {
  if (unit == TestUnit::kCuda) {
    CudaBed& bed = room ? *test_bed_with_room() : *test_bed();
    bed.run([&](UnitKernels& kernels, const device::Access& access) { kernels.run(access, op); });
    return;
  }
  OpenGate gate;
  const device::Access access(gate);
  LockstepLauncher launcher(room ? kTestRoom : 0);
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
