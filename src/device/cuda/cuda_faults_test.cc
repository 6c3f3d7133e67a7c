// Each call of CUDA fails once, at each of its turns, and all calls behind it or not: there is one error,
// nothing hangs, nothing is left behind, and what works is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_facts.h"
#include "device/cuda/fake_cuda.h"
#include "device/host_buffer.h"

namespace sluice::device {
namespace {

using testing::FakeCuda;

constexpr Bytes kBytes = 2 * kMiB + 100;  // three chunks
constexpr Bytes kInverted = 1000;         // the last of these

// The life of a device, in which each call is made.
class Life {
 public:
  explicit Life(FakeCuda& cuda) : cuda_(cuda), host_(64 * kMiB), source_(host_, Account::kExperts, kBytes) {
    static const std::vector<std::byte> kPattern = [] {
      std::vector<std::byte> pattern(kBytes);
      for (Bytes i = 0; i < kBytes; ++i) pattern[i] = static_cast<std::byte>(i * 7 + i / 1000);
      return pattern;
    }();
    std::ranges::copy(kPattern, source_.data());
    expected_ = kPattern;
    for (Bytes i = kBytes - kInverted; i < kBytes; ++i) expected_[i] ^= std::byte{0xff};
  }

  // Errors that came, each once.
  std::set<std::string> live() {
    CudaOptions options;
    options.memory = 4 * kMiB;
    options.host = &host_;
    options.api = &cuda_;
    cuda_.share_memory(true);
    std::unique_ptr<Device> device;
    attempt([&] { device = make_cuda_device(std::move(options)); });
    if (device == nullptr) return errors_;
    const Block block = device->memory().allocate(Account::kExperts, kBytes);
    for (int time = 0; time < 2; ++time) there_and_back(*device, block);
    was_lost_ = device->lost().has_value();
    return errors_;
  }
  bool was_made_and_is_right() const { return is_right_; }  // in its last turn
  bool was_lost() const { return was_lost_; }

 private:
  template <class Work>
  bool attempt(Work&& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      errors_.insert(error.what());
      return false;
    }
  }

  void there_and_back(Device& device, const Block& block) {
    HostBuffer back(host_, Account::kStaging, kBytes);
    Stream& stream = device.compute();
    const Ticket down = device.link().copy({source_.data(), kBytes}, block.address(), Traffic::kDemand);
    stream.wait(down.event());
    const std::optional<Address> here = device.in_place({source_.data(), kBytes});
    stream.enqueue({[&, here](const Access& access) {
      std::byte* const data = access.data(block.address(), kBytes);
      const std::byte* const in_place = here ? access.data(*here, kBytes) : source_.data();
      FakeCuda::launch(access, [data, in_place, this] {
        EXPECT_EQ(std::memcmp(in_place, expected_.data(), kBytes - kInverted), 0);
        for (Bytes i = kBytes - kInverted; i < kBytes; ++i) data[i] ^= std::byte{0xff};
      });
    }});
    const Ticket up =
        device.link().copy_back(block.address(), back.span(), Traffic::kResult, stream.record());
    is_right_ = attempt([&] { up.event().wait(); });
    attempt([&] { stream.synchronize(); });
    down.event().settled().wait();
    if (is_right_) {
      EXPECT_EQ(std::memcmp(back.data(), expected_.data(), kBytes), 0);
    }
  }

  FakeCuda& cuda_;
  Accountant host_;
  HostBuffer source_;
  std::vector<std::byte> expected_;
  std::set<std::string> errors_;
  bool is_right_ = false, was_lost_ = false;
};

std::map<std::string, int> calls_of_a_good_life() {
  FakeCuda cuda;
  Life life(cuda);
  EXPECT_EQ(life.live(), std::set<std::string>{});
  EXPECT_TRUE(life.was_made_and_is_right());
  EXPECT_EQ(cuda.left(), "");
  return cuda.calls();
}

TEST(CudaFaults, EachCallMayFailOnce) {
  int lives = 0, with_error = 0;
  for (const auto& [entry, calls] : calls_of_a_good_life()) {
    for (int nth = 0; nth < calls; ++nth) {
      SCOPED_TRACE(entry + " " + std::to_string(nth));
      FakeCuda cuda;
      cuda.fail(entry, nth, FakeCuda::kInvalidValue);
      Life life(cuda);
      const std::set<std::string> errors = life.live();
      EXPECT_LE(errors.size(), 1u) << ::testing::PrintToString(errors);
      for (const std::string& text : errors) {
        EXPECT_NE(text.find("cuda:0"), std::string::npos) << text;
        EXPECT_NE(text.find("fake error 1"), std::string::npos) << text;
      }
      EXPECT_EQ(cuda.left(), "");
      if (entry != "use") {  // a thread that cannot use the GPU is of no use
        EXPECT_FALSE(life.was_lost());
      }
      ++lives;
      with_error += errors.empty() ? 0 : 1;
      if (HasFailure()) return;
    }
  }
  std::cout << lives << " lives, " << with_error << " with an error\n";
  EXPECT_GT(with_error, 20);
}

TEST(CudaFaults, TheDeviceMayDieInEachCall) {
  int lives = 0, lost = 0;
  for (const auto& [entry, calls] : calls_of_a_good_life()) {
    for (int nth = 0; nth < calls; ++nth) {
      SCOPED_TRACE(entry + " " + std::to_string(nth));
      FakeCuda cuda;
      cuda.fail(entry, nth, FakeCuda::kDied, true);
      Life life(cuda);
      const std::set<std::string> errors = life.live();
      EXPECT_LE(errors.size(), 1u) << ::testing::PrintToString(errors);
      for (const std::string& text : errors)
        EXPECT_NE(text.find("fake error 700"), std::string::npos) << text;
      EXPECT_EQ(cuda.left(), "");
      ++lives;
      lost += life.was_lost() ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  std::cout << lives << " lives, " << lost << " lost\n";
  EXPECT_GT(lost, 20);
}

}  // namespace
}  // namespace sluice::device
