// Oracle: the scalar merge on the CPU.
#include "codec/exponents/bf16_recover.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "codec/exponents/bf16_split.h"
#include "device/cuda/unified_buffer.h"

namespace sluice::codec {
namespace {

TEST(Bf16Recover, GivesTheScalarPathsBitsOnADevice) {
  if (!device::unified_memory_available()) GTEST_SKIP() << "no CUDA device: the recovery kernel was not run";
  // All pairs of plane bytes, at every alignment, and counts that leave tails.
  constexpr std::size_t kPairs = 65'536;
  for (const std::size_t offset : {0, 1, 8, 15, 16}) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17}, kPairs}) {
      const device::UnifiedBuffer exponents(kPairs + 32), rest(kPairs + 32), words(2 * kPairs + 64);
      for (std::size_t i = 0; i < kPairs + 32; ++i) {
        exponents.data()[i] = static_cast<std::byte>(i >> 8);
        rest.data()[i] = static_cast<std::byte>(i);
      }
      std::memset(words.data(), 0x5a, words.size());
      recover_bf16_on_device(exponents.data() + offset, rest.data() + offset, count, words.data() + offset);
      std::vector<std::byte> expected(2 * count);
      bf16_split_kernels(Isa::kScalar)
          .merge(exponents.data() + offset, rest.data() + offset, count, expected.data());
      ASSERT_EQ(std::memcmp(words.data() + offset, expected.data(), 2 * count), 0) << offset << " " << count;
      for (std::size_t i = 0; i < words.size(); ++i)
        if (i < offset || i >= offset + 2 * count) {
          ASSERT_EQ(words.data()[i], std::byte{0x5a});
        }
    }
  }
}

TEST(Bf16Recover, WithoutADeviceIsAnErrorThatSaysSo) {
  if (device::unified_memory_available()) GTEST_SKIP() << "there is a CUDA device";
  try {
    recover_bf16_on_device(nullptr, nullptr, 1, nullptr);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kUnsupported || error.kind() == ErrorKind::kIo);
  }
}

}  // namespace
}  // namespace sluice::codec
