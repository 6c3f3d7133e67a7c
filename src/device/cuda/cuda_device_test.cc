#include "device/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "base/error_of.h"
#include "device/cuda/fake_cuda.h"
#include "device/each_device_test.h"
#include "device/host_buffer.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using testing::Barrier;
using testing::FakeCuda;

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaOptions options() {
    CudaOptions options;
    options.memory = 8 * kMiB;
    options.api = &cuda_;
    return options;
  }
  void open() { device_ = make_cuda_device(options()); }
  ~CudaDeviceTest() override {
    device_.reset();
    EXPECT_EQ(cuda_.left(), "");
  }
  Stream& stream() { return device_->compute(); }
  // An operation that launches this as a kernel.
  static Operation kernel(std::function<void()> work) {
    return {[work = std::move(work)](const Access& access) { FakeCuda::launch(access, work); }};
  }
  // A kernel that meets impossible codes.
  static Operation damaged() {
    return {[](const Access& access) {
      FakeCuda::launch(access, [fault = access.queue().fault] { *fault = 1; });
    }};
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, OperationsOnlyLaunchAndEventsWaitForTheGpu) {
  open();
  EXPECT_EQ(device_->name(), "cuda");
  Barrier barrier;
  bool launched = false;
  stream().enqueue(kernel([&] { barrier.stop_here(); }));
  const Event event = stream().record();
  stream().enqueue({[&](const Access&) { launched = true; }});
  device_->predict().synchronize();  // another queue
  barrier.wait_until_somebody_is_there();
  EXPECT_FALSE(event.done());
  barrier.open();
  event.wait();
  stream().synchronize();
  EXPECT_TRUE(launched);
  EXPECT_EQ(device_->computed().pieces, 2u);
}

TEST_F(CudaDeviceTest, CountsTheSecondsOfTheGpu) {
  open();
  stream().enqueue(kernel([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }));
  Signal signal;
  stream().wait(signal.event());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which nothing is computed
  signal.complete();
  stream().enqueue(kernel([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }));
  stream().synchronize();
  EXPECT_GE(device_->computed().busy_s, 0.04);
  EXPECT_LT(device_->computed().busy_s, 0.1);
  EXPECT_EQ(device_->computed().overruns, 0u);
}

TEST_F(CudaDeviceTest, AccessGivesPointersOfTheGpuAndAQueue) {
  open();
  const Block block = device_->memory().allocate(Account::kExperts, 1000);
  EXPECT_EQ(block.address().value % 256, 0u);
  void* compute = nullptr;
  void* predict = nullptr;
  std::byte* data = nullptr;
  stream().enqueue({[&](const Access& access) {
    compute = access.queue().stream;
    EXPECT_NE(access.queue().fault, nullptr);
    data = access.data(block.address() + 8, 992);
  }});
  device_->predict().enqueue({[&](const Access& access) { predict = access.queue().stream; }});
  stream().synchronize();
  device_->predict().synchronize();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data), block.address().value + 8);
  EXPECT_NE(compute, nullptr);
  EXPECT_NE(predict, nullptr);
  EXPECT_NE(compute, predict);
}

using CudaDeviceDeathTest = CudaDeviceTest;

TEST_F(CudaDeviceDeathTest, AnAddressBeyondItsMemoryIsOurOwnBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        open();
        const Block all = device_->memory().allocate(Account::kExperts, 8 * kMiB);
        stream().enqueue({[&](const Access& access) { access.data(all.address() + (8 * kMiB - 1), 2); }});
        stream().synchronize();
      },
      "beyond the memory of the GPU");
}

TEST_F(CudaDeviceTest, ImpossibleCodesAreAnErrorOfTheStreamOnce) {
  open();
  stream().enqueue(damaged());
  const Event event = stream().record();
  const std::string text = error_of([&] { event.wait(); });
  EXPECT_NE(text.find("no valid encoding"), std::string::npos) << text;
  ASSERT_TRUE(event.error());
  EXPECT_EQ(event.error()->kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(event.error()->where(), "");  // the caller knows the expert and adds it
  bool ran = false;
  stream().enqueue({[&](const Access&) { ran = true; }});
  EXPECT_EQ(error_of([&] { stream().record().wait(); }), text);
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), text);
  EXPECT_FALSE(ran);
  stream().synchronize();
  stream().enqueue({[&](const Access&) { ran = true; }});
  stream().record().wait();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaDeviceTest, AFaultHarmsNothingBeforeItAndNoOtherStream) {
  open();
  stream().enqueue(kernel([] {}));
  const Event before = stream().record();
  before.wait();
  stream().enqueue(damaged());
  const Event behind = stream().record();
  device_->predict().enqueue(kernel([] {}));
  device_->predict().synchronize();
  EXPECT_EQ(behind.settled().error(), std::nullopt);
  behind.settled().wait();
  EXPECT_TRUE(behind.error());
  EXPECT_FALSE(before.error());
  EXPECT_NE(error_of([&] { stream().synchronize(); }), "no error");
}

// The stream sleeps for an event when the kernel before finds the fault.
TEST_F(CudaDeviceTest, AFaultEndsAWaitThatWouldNotEnd) {
  open();
  Signal never;
  stream().enqueue(damaged());
  stream().wait(never.event());
  EXPECT_NE(error_of([&] { stream().synchronize(); }), "no error");
}

TEST_F(CudaDeviceTest, AnOperationThatThrowsBehindLaunchesWaitsForThese) {
  open();
  Barrier barrier;
  stream().enqueue(kernel([&] { barrier.stop_here(); }));
  stream().enqueue({[](const Access&) { throw Error(ErrorKind::kIo, "odd"); }});
  const Event event = stream().record();
  barrier.wait_until_somebody_is_there();
  EXPECT_FALSE(event.done());
  barrier.open();
  EXPECT_EQ(error_of([&] { event.wait(); }), "odd");
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), "odd");
}

TEST_F(CudaDeviceTest, OneThatGoesEndsWhatItHasBegun) {
  open();
  bool ran = false;
  Event event;
  {
    stream().enqueue(kernel([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ran = true;
    }));
    event = stream().record();
    event.on_done([&same = stream()](const auto&) { same.enqueue({[](const Access&) {}}); });
    Signal launched;
    stream().enqueue({[&](const Access&) { launched.complete(); }});
    launched.event().wait();
    stream().enqueue(kernel([] {}));
  }
  device_.reset();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(event.done());
  EXPECT_FALSE(event.error());
}

// The stream does not sleep until a copy is done: the GPU's queue waits for that of the link.
TEST_F(CudaDeviceTest, AnOperationIsLaunchedBehindACopyThatIsUnderWay) {
  open();
  const Block block = device_->memory().allocate(Account::kExperts, 2 * kMiB);
  const std::vector<std::byte> data(2 * kMiB, std::byte{5});
  for (const bool fails : {false, true}) {
    cuda_.hold_copies(true);
    const int awaited = cuda_.calls()["await"];
    if (fails) cuda_.fail("await", 0, FakeCuda::kInvalidValue);  // what the link does first
    const Ticket ticket = device_->link().copy(data, block.address(), Traffic::kDemand);
    while (cuda_.calls()["await"] == awaited) std::this_thread::yield();
    stream().wait(ticket.event());
    Signal launched;
    bool found = false;
    stream().enqueue({[&](const Access& access) {
      FakeCuda::launch(access, [&found, at = access.data(block.address() + (2 * kMiB - 1), 1)] {
        found = *at == std::byte{5};
      });
      launched.complete();
    }});
    const Event done = stream().record();
    launched.event().wait();
    EXPECT_FALSE(done.done());
    EXPECT_FALSE(ticket.event().done());
    cuda_.hold_copies(false);
    const std::string text = error_of([&] { done.wait(); });
    EXPECT_EQ(text.find("a copy over the link failed") != std::string::npos, fails) << text;
    EXPECT_EQ(error_of([&] { stream().synchronize(); }), text);
    EXPECT_EQ(error_of([&] { ticket.event().wait(); }), text);
    EXPECT_TRUE(found);
    stream().synchronize();
  }
  EXPECT_GE(cuda_.calls().at("follow"), 2);
  EXPECT_FALSE(device_->lost());
}

// A link that is limited is slower than the GPU's: who waits for a copy waits for its time.
TEST_F(CudaDeviceTest, NothingIsLaunchedBehindACopyThatIsPaced) {
  CudaOptions limited = options();
  limited.link_bytes_per_s = 100e6;
  device_ = make_cuda_device(std::move(limited));
  const Block block = device_->memory().allocate(Account::kExperts, kMiB);
  const std::vector<std::byte> data(kMiB);
  const Ticket ticket = device_->link().copy(data, block.address(), Traffic::kDemand);
  stream().wait(ticket.event());
  bool was_done = false;
  stream().enqueue({[&](const Access&) { was_done = ticket.event().done(); }});
  stream().synchronize();
  EXPECT_TRUE(was_done);
  EXPECT_FALSE(cuda_.calls().contains("follow"));
}

TEST_F(CudaDeviceTest, TwoOrMoreChunksAreUnderWay) {
  open();
  const Block block = device_->memory().allocate(Account::kExperts, 8 * kMiB);
  const std::vector<std::byte> data(8 * kMiB, std::byte{5});
  std::vector<std::byte> back(8 * kMiB);
  for (int time = 0; time < 20 && cuda_.most_copies_under_way() < 2; ++time) {
    device_->link().copy(data, block.address(), Traffic::kDemand).event().wait();
    device_->link().copy_back(block.address(), back, Traffic::kResult).event().wait();
    EXPECT_EQ(back, data);
  }
  EXPECT_GE(cuda_.most_copies_under_way(), 2u);
  EXPECT_LE(cuda_.most_copies_under_way(), 8u);
}

TEST_F(CudaDeviceTest, LocksTheHostsBuffersAsLongAsItExists) {
  Accountant host(64 * kMiB);
  const HostBuffer before(host, Account::kExperts, kMiB);
  CudaOptions with_host = options();
  with_host.host = &host;
  device_ = make_cuda_device(std::move(with_host));
  {
    const HostBuffer later(host, Account::kStaging, 2 * kMiB);
    EXPECT_EQ(cuda_.locked(), 3 * kMiB);
    // Buffers come and go on threads that have never used the GPU.
    std::thread([&] { const HostBuffer other(host, Account::kStaging, kMiB); }).join();
    cuda_.refuse_locks(true);
    const HostBuffer refused(host, Account::kStaging, kMiB);
    EXPECT_EQ(host.crossing().locked().refused, 1u);
    const Block block = device_->memory().allocate(Account::kExperts, kMiB);
    device_->link().copy(refused.span(), block.address(), Traffic::kDemand).event().wait();
  }
  EXPECT_EQ(cuda_.locked(), kMiB);
  device_.reset();
  EXPECT_EQ(cuda_.locked(), 0u);
  cuda_.refuse_locks(false);
  device_ = make_cuda_device(options());  // and no host
  EXPECT_EQ(cuda_.locked(), 0u);
}

class CudaInPlaceTest : public CudaDeviceTest {
 protected:
  ~CudaInPlaceTest() override { device_.reset(); }
  void open(std::optional<bool> in_place = {}) {
    device_.reset();
    CudaOptions with_host = options();
    with_host.host = &host_;
    with_host.in_place = in_place;
    device_ = make_cuda_device(std::move(with_host));
  }
  Accountant host_{64 * kMiB};
  const HostBuffer buffer_{host_, Account::kExperts, kMiB};
};

TEST_F(CudaInPlaceTest, ReadsLockedBuffersOfMemoryThatItShares) {
  cuda_.share_memory(true);
  open();
  buffer_.data()[kMiB - 1] = std::byte{5};
  const std::optional<Address> at = device_->in_place(buffer_.span().subspan(256));
  ASSERT_TRUE(at);
  EXPECT_NE(at->space, &device_->memory().space());
  bool found = false;
  stream().enqueue({[&, last = *at + (kMiB - 257)](const Access& access) {
    FakeCuda::launch(access, [&found, data = access.data(last, 1)] { found = *data == std::byte{5}; });
  }});
  stream().synchronize();
  EXPECT_TRUE(found);
  const HostBuffer back(host_, Account::kStaging, kMiB - 256);  // locked since it is there
  device_->link().copy_back(*at, back.span(), Traffic::kResult).event().wait();
  EXPECT_EQ(back.data()[kMiB - 257], std::byte{5});
  EXPECT_TRUE(device_->in_place(back.span()));
  EXPECT_EQ(cuda_.locked(), 2 * kMiB);
}

TEST_F(CudaInPlaceTest, ReadsNothingElseInPlace) {
  cuda_.share_memory(true);
  open();
  const std::vector<std::byte> of_nobody(1000);
  EXPECT_FALSE(device_->in_place(of_nobody));
  EXPECT_FALSE(device_->in_place({buffer_.data() + 1, kMiB}));  // its last byte is beyond
  EXPECT_FALSE(device_->in_place({buffer_.data() - 1, 2}));
  const HostBuffer tables(host_, Account::kTables, kMiB);  // never cross a link
  EXPECT_FALSE(device_->in_place(tables.span()));
  const std::byte* gone = nullptr;
  {
    const HostBuffer other(host_, Account::kStaging, kMiB);
    gone = other.data();
    EXPECT_TRUE(device_->in_place(other.span()));
  }
  EXPECT_FALSE(device_->in_place({gone, 1}));
}

TEST_F(CudaInPlaceTest, OptionsSayMoreThanTheGpu) {
  open();
  EXPECT_FALSE(device_->in_place(buffer_.span()));  // it has its own memory
  EXPECT_FALSE(cuda_.calls().contains("mapped_at"));
  open(true);
  EXPECT_TRUE(device_->in_place(buffer_.span()));
  cuda_.share_memory(true);
  open(false);
  EXPECT_FALSE(device_->in_place(buffer_.span()));
}

TEST_F(CudaInPlaceTest, WhatCannotBeMappedIsCopied) {
  const Bytes bytes = buffer_.size();
  for (const char* const entry : {"lock", "mapped_at"}) {
    SCOPED_TRACE(entry);
    device_.reset();
    cuda_.fail(entry, 0, FakeCuda::kInvalidValue);
    open(true);
    EXPECT_FALSE(device_->in_place(buffer_.span()));
    EXPECT_EQ(host_.crossing().locked().bytes, bytes);
    EXPECT_EQ(host_.crossing().locked().refused, 0u);
    const Block block = device_->memory().allocate(Account::kExperts, kMiB);
    device_->link().copy(buffer_.span(), block.address(), Traffic::kDemand).event().wait();
  }
  device_.reset();
  cuda_.refuse_locks(true);
  open(true);
  EXPECT_FALSE(device_->in_place(buffer_.span()));
  EXPECT_EQ(host_.crossing().locked().refused, 1u);
}

using CudaInPlaceDeathTest = CudaInPlaceTest;

TEST_F(CudaInPlaceDeathTest, AnAddressBeyondABufferIsOurOwnBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        open(true);
        const Address at = device_->in_place(buffer_.span()).value();
        stream().enqueue({[&](const Access& access) { access.data(at + 1, kMiB); }});
        stream().synchronize();
      },
      "not in pages of the host that the GPU reaches");
}

TEST_F(CudaDeviceTest, SaysWhatThereIsNotEnoughOf) {
  CudaOptions large = options();
  large.memory = 65 * kMiB;
  const std::string text = error_of([&] { make_cuda_device(large); });
  EXPECT_NE(text.find("--device-memory"), std::string::npos) << text;
  EXPECT_NE(text.find("64.00 MiB free"), std::string::npos) << text;
  CudaOptions other = options();
  other.index = 1;
  EXPECT_EQ(error_of([&] { make_cuda_device(other); }),
            "cuda:1: there is no such GPU; expected 0 to 0, found 1 GPU");
  cuda_.fail("count", 0, FakeCuda::kNoGpu);
  EXPECT_NE(error_of([&] { make_cuda_device(options()); }).find("CUDA finds no GPU"), std::string::npos);
  EXPECT_EQ(cuda_.left(), "");
}

TEST_F(CudaDeviceTest, AnErrorThatStaysLosesTheDevice) {
  open();
  const Block block = device_->memory().allocate(Account::kExperts, kMiB);
  const std::vector<std::byte> data(kMiB);
  stream().enqueue(kernel([&] { cuda_.die(); }));
  const std::string text = error_of([&] { stream().synchronize(); });
  EXPECT_NE(text.find("does not answer any more"), std::string::npos) << text;
  EXPECT_NE(text.find("fake error 700"), std::string::npos) << text;
  ASSERT_TRUE(device_->lost());
  EXPECT_EQ(error_of([&] { device_->link().copy(data, block.address(), Traffic::kDemand).event().wait(); }),
            text);
  EXPECT_EQ(error_of([&] { device_->predict().record().wait(); }), text);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of([&] { stream().synchronize(); }), text);
}

TEST_F(CudaDeviceTest, ACopyFindsThatTheDeviceIsLost) {
  open();
  const Block block = device_->memory().allocate(Account::kExperts, 4 * kMiB);
  const std::vector<std::byte> data(4 * kMiB);
  cuda_.die();
  const std::string text =
      error_of([&] { device_->link().copy(data, block.address(), Traffic::kDemand).event().wait(); });
  EXPECT_NE(text.find("does not answer any more"), std::string::npos) << text;
  EXPECT_EQ(error_of([&] { stream().synchronize(); }), text);
}

TEST(CudaDevice, NeedsABuildWithCuda) {
  if (cuda_api() != nullptr) GTEST_SKIP() << "this program was built with CUDA";
  const std::string text = error_of([] { make_cuda_device({}); });
  EXPECT_EQ(text, "this program was built without CUDA; configure with -DSLUICE_CUDA=ON");
}

// One that has its own memory reads the host's over its link.
TEST(CudaDevice, AGpuReadsTheHostsBuffersInPlace) {
  const std::string why = testing::why_no_gpu();
  if (!why.empty()) GTEST_SKIP() << "NOT TESTED ON A GPU: " << why;
  Accountant host(64 * kMiB);
  const HostBuffer from(host, Account::kExperts, 3 * kMiB), back(host, Account::kStaging, 2 * kMiB);
  const std::unique_ptr<Device> device = make_cuda_device({.memory = kMiB, .host = &host, .in_place = true});
  for (Bytes i = 0; i < from.size(); ++i) from.data()[i] = static_cast<std::byte>(i * 7 + i / 1000);
  const std::span<const std::byte> meant = from.span().subspan(4096 + 256, back.size());
  const std::optional<Address> at = device->in_place(meant);
  ASSERT_TRUE(at);
  bool is_reached = false;
  device->compute().enqueue(
      {[&](const Access& access) { is_reached = access.data(*at, meant.size()) != nullptr; }});
  device->compute().synchronize();
  EXPECT_TRUE(is_reached);
  device->link().copy_back(*at, back.span(), Traffic::kResult).event().wait();
  EXPECT_TRUE(std::ranges::equal(back.span(), meant));
  EXPECT_FALSE(device->in_place({from.data() + 1, from.size()}));
}

// The tests of links and streams run on a real GPU, too (testing::devices()).
TEST(CudaDevice, IsTestedOnAGpu) {
  const std::string why = testing::why_no_gpu();
  if (!why.empty()) GTEST_SKIP() << "NOT TESTED ON A GPU: " << why;
}

}  // namespace
}  // namespace sluice::device
