#include "device/choice/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/error_of.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<GpuInfo> kTwo = {{"Fake 1", kGiB, 9, 0, {}}, {"Fake 2", kGiB, 8, 6, {}}};

std::string refusal(unsigned index, GpuLack lack, const std::vector<GpuInfo>& gpus, ErrorKind kind) {
  try {
    check_is_there({.index = index}, lack, gpus);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(MakeDevice, EachThingThatAGpuNeedsIsNamedIfItIsMissing) {
  EXPECT_THAT(refusal(0, GpuLack::kCuda, {}, ErrorKind::kUnsupported),
              AllOf(HasSubstr("--device: this program was built without CUDA; expected "),
                    HasSubstr("-DSLUICE_CUDA=ON")));
  EXPECT_THAT(refusal(0, GpuLack::kDriver, {}, ErrorKind::kUnsupported),
              AllOf(HasSubstr("--device: there is no driver for CUDA devices; expected "),
                    HasSubstr("install the driver")));
  EXPECT_THAT(refusal(1, GpuLack::kGpu, {}, ErrorKind::kNotFound),
              AllOf(HasSubstr("--device: there is no CUDA device; expected a CUDA device 1"),
                    HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(refusal(2, GpuLack::kNothing, kTwo, ErrorKind::kNotFound),
              AllOf(HasSubstr("expected cuda:0 to cuda:1, found cuda:2"),
                    HasSubstr("cuda:0 (Fake 1, compute 9.0), cuda:1 (Fake 2, compute 8.6)")));
  EXPECT_THAT(refusal(1, GpuLack::kNothing, {kTwo[0]}, ErrorKind::kNotFound),
              HasSubstr("expected cuda:0, found cuda:1"));
  EXPECT_EQ(refusal(1, GpuLack::kNothing, kTwo, ErrorKind::kNotFound), "no error");
}

TEST(MakeDevice, AutoFindsAGpuOrSaysWhyThereIsNone) {
  const FoundDevice found = find_device();
  EXPECT_EQ(found.spec.has_value(), gpu_lack() == GpuLack::kNothing);
  EXPECT_EQ(found.why, gpu_lack_text(gpu_lack()));
  if (found.spec) {
    EXPECT_EQ(to_text(*found.spec), "cuda:0");
  }
}

TEST(MakeDevice, WithoutAGpuNoneIsMade) {
  if (gpu_lack() == GpuLack::kNothing) GTEST_SKIP() << "there is a GPU";
  const std::string none = error_of([] { device_facts(CudaSpec{}); });
  EXPECT_THAT(none, HasSubstr("--device: "));
  EXPECT_NE(error_of([] { make_device(CudaSpec{}, {.memory = kMiB}); }), "no error");
}

TEST(MakeDevice, APlayedDeviceIsMadeAsItSays) {
  const DeviceSpec spec = parse_device_spec("emulated:threads=2", "");
  const DeviceFacts facts = device_facts(spec);
  EXPECT_EQ(facts.hardware, "");
  EXPECT_EQ(facts.context, 0u);
  EXPECT_FALSE(facts.free);
  const std::unique_ptr<Device> device = make_device(spec, {.memory = 3 * kMiB});
  EXPECT_EQ(device->name(), "emulated");
  EXPECT_EQ(device->pool().threads(), 2u);
  EXPECT_EQ(device->memory().accountant().budget(), 3 * kMiB);
}

}  // namespace
}  // namespace sluice::device
