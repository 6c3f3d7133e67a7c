// A unit whose kernels are those of a GPU, in lockstep: one wrong bit of any operation is found.
#include "kernels/check/unit_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "device/emulated/emulated_device.h"
#include "kernels/gpu/gpu_formats.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/ops/wrong_kernels.h"

namespace sluice::kernels {
namespace {

using ::testing::HasSubstr;

UnitWork all_work(GatingForm gating = GatingForm::kSilu) {
  UnitWork work{.dense_part = true,
                .caches = {DType::kBF16, DType::kF32, DType::kI8},
                .gating = {gating, {0.7f, 1.702f}}};
  for (const codec::MatrixFormat* const format : gpu_formats()) work.experts.push_back(format);
  work.dense = work.experts;
  return work;
}

UnitCheck check_with(std::unique_ptr<UnitKernels> kernels, const UnitWork& work) {
  device::EmulatedOptions options;
  options.spec = device::parse_emulated_spec("emulated:link=inf,compute=inf,latency=0us", "test");
  options.memory = kUnitCheckBytes;
  const std::unique_ptr<device::Device> device = device::make_emulated_device(std::move(options));
  return check_unit(*device, *kernels, work);
}

UnitCheck check_wrong(Operation wrong, const UnitWork& work, const codec::MatrixFormat* format = nullptr,
                      bool throws = false) {
  return check_with(
      std::make_unique<WrongKernels>(make_lockstep_kernels({.room = kMiB}), wrong, format, throws), work);
}

TEST(UnitCheck, KernelsOfAGpuAreGood) {
  for (const GatingForm form :
       {GatingForm::kSilu, GatingForm::kRelu, GatingForm::kClamped, GatingForm::kClampedPairs}) {
    const auto start = std::chrono::steady_clock::now();
    const UnitCheck check = check_with(make_lockstep_kernels({.room = kMiB}), all_work(form));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::cout << check.tried << " operations checked in " << took.count() << " ms\n";
    for (const UnitFault& fault : check.faults) ADD_FAILURE() << fault.operation << ": " << fault.found;
    EXPECT_GT(check.tried, 50u);
  }
}

TEST(UnitCheck, FastProductsNeedOnlyBeNear) {
  UnitWork work = all_work();
  EXPECT_FALSE(check_with(make_lockstep_kernels({.room = kMiB, .math = DeviceMath::kFast}), work).good());
  work.math = DeviceMath::kFast;
  for (const UnitFault& fault :
       check_with(make_lockstep_kernels({.room = kMiB, .math = DeviceMath::kFast}), work).faults)
    ADD_FAILURE() << fault.operation << ": " << fault.found;
  // A wrong bit is the sign of the first number.
  const UnitCheck check =
      check_with(std::make_unique<WrongKernels>(
                     make_lockstep_kernels({.room = kMiB, .math = DeviceMath::kFast}), Operation::kMlp),
                 work);
  ASSERT_FALSE(check.good());
}

TEST(UnitCheck, FindsAWrongBitOfEachOperation) {
  UnitWork work = all_work();
  work.experts = work.dense = {&codec::kFormatBf16};
  work.caches = {DType::kBF16};
  for (int i = 0; i < kOperations; ++i) {
    const auto wrong = static_cast<Operation>(i);
    SCOPED_TRACE(i);
    const UnitCheck check = check_wrong(wrong, work);
    ASSERT_FALSE(check.good());
    for (const UnitFault& fault : check.faults) {
      EXPECT_THAT(fault.found, HasSubstr("other bits"));
      EXPECT_EQ(fault.of_experts, fault.operation.find("experts") != std::string::npos);
      EXPECT_NE(fault.of_experts, fault.of_dense);
    }
    EXPECT_EQ(check.faults.size(), wrong == Operation::kMlp ? 2u : 1u);
  }
}

TEST(UnitCheck, NamesTheFormatOfWrongExperts) {
  UnitWork work = all_work();
  work.dense_part = false;
  for (const codec::MatrixFormat* const format : gpu_formats()) {
    const UnitCheck check = check_wrong(Operation::kMlp, work, format);
    ASSERT_EQ(check.faults.size(), 1u) << format->name;
    EXPECT_EQ(check.faults[0].format, format);
    EXPECT_EQ(check.faults[0].operation, "experts in " + std::string(format->name));
  }
}

TEST(UnitCheck, TellsWhatALaunchSaid) {
  UnitWork work = all_work();
  work.caches = {DType::kBF16, DType::kI8};
  work.experts = work.dense = {};
  const UnitCheck check = check_wrong(Operation::kAttention, work, nullptr, true);
  ASSERT_EQ(check.faults.size(), 2u);
  EXPECT_THAT(check.faults[0].found, HasSubstr("the launch was refused"));
  EXPECT_THAT(check.faults[1].operation, HasSubstr("attention over"));
}

TEST(UnitCheck, TriesNothingElse) {
  EXPECT_EQ(check_wrong(Operation::kAttention, {}).tried, 0u);
  const UnitCheck experts = check_wrong(Operation::kMatmul, {.experts = {&codec::kFormatQ4K}});
  EXPECT_EQ(experts.tried, 2u);  // and gathering of their rows
  EXPECT_TRUE(experts.good());
}

}  // namespace
}  // namespace sluice::kernels
