#include "device/cuda/cuda_facts.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error_of.h"
#include "device/cuda/fake_cuda.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using testing::FakeCuda;

// Says what it is told, one after the other, and the last for ever.
class ToldUse final : public GpuMemoryUse {
 public:
  explicit ToldUse(std::vector<std::optional<Bytes>> used) : used_(std::move(used)) {}
  std::optional<Bytes> used(const std::string& bus_id) override {
    EXPECT_EQ(bus_id, "0000:3B:00.0");
    const std::optional<Bytes> now = used_.front();
    if (used_.size() > 1) used_.erase(used_.begin());
    return now;
  }

 private:
  std::vector<std::optional<Bytes>> used_;
};

TEST(CudaFacts, SaysWhatTheGpuHasAndMeasuresTheContext) {
  FakeCuda cuda;
  ToldUse use({Bytes{100 * kMiB}, Bytes{555 * kMiB}});
  const CudaFacts facts = cuda_facts({.api = &cuda, .use = &use});
  EXPECT_EQ(facts.name, "Fake GPU");
  EXPECT_EQ(facts.compute_major, 9);
  EXPECT_EQ(facts.multiprocessors, 132);
  EXPECT_EQ(facts.total, 64 * kMiB);
  EXPECT_EQ(facts.free, 64 * kMiB);
  EXPECT_TRUE(facts.context_is_measured);
  EXPECT_EQ(facts.context, 455 * kMiB);
  EXPECT_EQ(cuda.left(), "");
}

TEST(CudaFacts, AssumesWhatCannotBeMeasured) {
  for (const auto& used : std::vector<std::vector<std::optional<Bytes>>>{
           {std::nullopt}, {Bytes{50}, std::nullopt}, {Bytes{50}, Bytes{50}}, {Bytes{50}, Bytes{40}}}) {
    FakeCuda cuda;
    ToldUse use(used);
    const CudaFacts facts = cuda_facts({.api = &cuda, .use = &use});
    EXPECT_FALSE(facts.context_is_measured);
    EXPECT_EQ(facts.context, kAssumedContext);
  }
  // There is a context already, and nothing more will be taken.
  FakeCuda cuda;
  for (const bool measured : {true, false}) {
    ToldUse use({Bytes{1}, Bytes{7}});
    EXPECT_EQ(cuda_facts({.api = &cuda, .use = &use}).context_is_measured, measured);
  }
}

TEST(CudaFacts, EachCallMayFail) {
  FakeCuda good;
  ToldUse use({Bytes{1}, Bytes{2}});
  const auto ask = [&](FakeCuda& cuda) {
    cuda_facts({.api = &cuda, .use = &use});
    measure_cuda_link(0, kMiB, &cuda);
  };
  ask(good);
  int failed = 0;
  for (const auto& [entry, calls] : good.calls())
    for (int nth = 0; nth < calls; ++nth) {
      SCOPED_TRACE(entry + " " + std::to_string(nth));
      FakeCuda cuda;
      cuda.fail(entry, nth, FakeCuda::kInvalidValue);
      const std::string text = error_of([&] { ask(cuda); });
      if (text != "no error") {
        ++failed;
        EXPECT_NE(text.find("fake error 1"), std::string::npos) << text;
      }
      EXPECT_EQ(cuda.left(), "");
    }
  EXPECT_GT(failed, 10);
}

TEST(CudaFacts, MeasuresTheLinkBothWays) {
  FakeCuda cuda;
  const CudaLinkRates rates = measure_cuda_link(0, kMiB, &cuda);
  EXPECT_GT(rates.to_device, 1e6);
  EXPECT_GT(rates.from_device, 1e6);
  EXPECT_EQ(cuda.left(), "");
}

TEST(GpuInfo, ListsGpusAndWhatIsFree) {
  FakeCuda cuda(64 * kMiB, 2);
  ToldUse use({Bytes{24 * kMiB}, std::nullopt});
  const std::vector<GpuInfo> gpus = list_gpus_of(cuda, &use);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].name, "Fake GPU");
  EXPECT_EQ(gpus[0].free, 40 * kMiB);
  EXPECT_EQ(gpus[1].free, std::nullopt);
  EXPECT_EQ(cuda.calls().count("use"), 0u);  // no context
  EXPECT_EQ(gpu_runtime_of(cuda), "CUDA runtime 13.0, driver for 12.8");
  cuda.fail("versions", 0, 1);
  EXPECT_EQ(gpu_runtime_of(cuda), "CUDA runtime 13.0, no driver");
  cuda.fail("count", 0, 1);
  EXPECT_TRUE(list_gpus_of(cuda, nullptr).empty());
  EXPECT_EQ(list_gpus_of(cuda, nullptr)[0].free, std::nullopt);
}

// What NVML's functions do, as its header has them.
int shutdowns = 0;
int nvml_works() { return 0; }
int nvml_shutdown() { return ++shutdowns, 0; }
int nvml_no_driver() { return 9; }
int nvml_by_bus(const char* bus_id, void** device) {
  static int one;
  *device = &one;
  return std::strcmp(bus_id, "0000:3B:00.0") == 0 ? 0 : 6;
}
int nvml_memory(void*, unsigned long long* memory) {
  memory[0] = 1000;
  memory[1] = 400;
  memory[2] = 600;
  return 0;
}

template <class Function>
void* symbol(Function* function) {
  return reinterpret_cast<void*>(function);
}

TEST(Nvml, SaysWhatIsUsed) {
  const auto find = [](const char* name) -> void* {
    const std::string_view asked = name;
    if (asked == "nvmlInit_v2") return symbol(nvml_works);
    if (asked == "nvmlShutdown") return symbol(nvml_shutdown);
    if (asked == "nvmlDeviceGetHandleByPciBusId_v2") return symbol(nvml_by_bus);
    if (asked == "nvmlDeviceGetMemoryInfo") return symbol(nvml_memory);
    return nullptr;
  };
  {
    const auto nvml = make_nvml(find);
    ASSERT_NE(nvml, nullptr);
    EXPECT_EQ(nvml->used("0000:3B:00.0"), Bytes{600});
    EXPECT_EQ(nvml->used("0000:00:00.0"), std::nullopt);
  }
  EXPECT_EQ(shutdowns, 1);
  EXPECT_EQ(make_nvml([&](const char* name) {
              return std::string_view(name) == "nvmlInit_v2" ? symbol(nvml_no_driver) : find(name);
            }),
            nullptr);
  EXPECT_EQ(make_nvml([&](const char* name) {
              return std::string_view(name) == "nvmlDeviceGetMemoryInfo" ? nullptr : find(name);
            }),
            nullptr);
  EXPECT_EQ(shutdowns, 1);
}

}  // namespace
}  // namespace sluice::device
