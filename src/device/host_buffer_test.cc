#include "device/host_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"

namespace sluice::device {
namespace {

constexpr Bytes kPage = 4096;

TEST(HostBuffer, IsZeroAlignedAndChargedForWholePages) {
  Accountant accountant(kMiB);
  {
    HostBuffer buffer(accountant, Account::kKv, 5000);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.size(), 5000u);
    EXPECT_GE(buffer.charged(), 8192u);
    EXPECT_EQ(buffer.charged() % kPage, 0u);
    EXPECT_EQ(accountant.used(Account::kKv), buffer.charged());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kPage, 0u);
    EXPECT_EQ(buffer.span().size(), 5000u);
    EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    std::memset(buffer.data(), 1, buffer.charged());
  }
  EXPECT_EQ(accountant.used(), 0u);
  EXPECT_GT(accountant.peak(), 0u);
}

TEST(HostBuffer, MovesItsCharge) {
  Accountant accountant(kMiB);
  HostBuffer a(accountant, Account::kKv, kPage);
  std::byte* const data = a.data();
  HostBuffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.data(), data);
  b = HostBuffer(accountant, Account::kDense, 2 * kPage);
  EXPECT_EQ(accountant.used(Account::kKv), 0u);
  EXPECT_EQ(accountant.used(Account::kDense), 2 * kPage);
  b.release();
  b.release();
  EXPECT_FALSE(b);
  EXPECT_EQ(accountant.used(), 0u);
}

TEST(HostBuffer, OfNothingIsEmptyAndFree) {
  Accountant accountant(0);
  const HostBuffer buffer(accountant, Account::kKv, 0);
  EXPECT_FALSE(buffer);
  EXPECT_EQ(buffer.size(), 0u);
}

TEST(HostBuffer, RefusedByTheBudgetLeavesNoCharge) {
  Accountant accountant(2 * kPage);
  EXPECT_THROW(HostBuffer(accountant, Account::kKv, 2 * kPage + 1), Error);
  EXPECT_THROW(HostBuffer(accountant, Account::kKv, ~Bytes{0}), Error);
  EXPECT_EQ(accountant.used(), 0u);
}

TEST(HostBuffer, RefusedByTheSystemLeavesNoCharge) {
  Accountant accountant(~Bytes{0});
  try {
    const HostBuffer never(accountant, Account::kKv, Bytes{1} << 60);  // more than any address space
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
  }
  EXPECT_EQ(accountant.used(), 0u);
}

TEST(BufferPool, ReusesBuffersOfTheSamePages) {
  Accountant accountant(kMiB);
  BufferPool pool(accountant, Account::kStaging, kMiB);
  HostBuffer a = pool.take(5000);
  std::byte* const data = a.data();
  EXPECT_EQ(pool.in_use(), 2 * kPage);
  pool.give(std::move(a));
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.free_bytes(), 2 * kPage);
  EXPECT_EQ(accountant.used(Account::kStaging), 2 * kPage) << "free buffers stay charged";
  HostBuffer b = pool.take(8000);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.size(), 8000u);
  EXPECT_EQ(pool.maps(), 1u);
  pool.give(std::move(b));
  pool.trim();
  EXPECT_EQ(accountant.used(), 0u);
  EXPECT_EQ(pool.free_bytes(), 0u);
}

TEST(BufferPool, ASteadyStateMapsNothing) {
  Accountant accountant(100 * kPage);
  BufferPool pool(accountant, Account::kStaging, 100 * kPage);
  std::uint64_t maps = 0;
  for (int round = 0; round < 20; ++round) {
    HostBuffer a = pool.take(kPage), b = pool.take(3 * kPage), c = pool.take(3 * kPage);
    pool.give(std::move(b));
    pool.give(std::move(a));
    pool.give(std::move(c));
    if (round == 0) maps = pool.maps();
  }
  EXPECT_EQ(pool.maps(), maps);
  EXPECT_EQ(maps, 3u);
}

TEST(BufferPool, FreeBuffersMakeRoomForOtherSizes) {
  Accountant accountant(10 * kPage);
  BufferPool pool(accountant, Account::kStaging, 10 * kPage);
  pool.give(pool.take(6 * kPage));
  EXPECT_TRUE(pool.can_take(8 * kPage));
  EXPECT_TRUE(pool.has_free(6 * kPage));
  EXPECT_FALSE(pool.has_free(8 * kPage));
  const Bytes before = accountant.used();
  EXPECT_EQ(before, 6 * kPage);
  HostBuffer big = pool.take(8 * kPage);
  EXPECT_EQ(accountant.used(), 8 * kPage);
  EXPECT_EQ(pool.free_bytes(), 0u);
  pool.give(std::move(big));
}

TEST(BufferPool, BuffersInUseAreALimit) {
  Accountant accountant(100 * kPage);
  BufferPool pool(accountant, Account::kStaging, 4 * kPage);
  HostBuffer a = pool.take(3 * kPage);
  EXPECT_TRUE(pool.can_take(kPage));
  EXPECT_FALSE(pool.can_take(2 * kPage));
  try {
    pool.take(2 * kPage);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBudget);
  }
  EXPECT_EQ(pool.in_use(), 3 * kPage);
  pool.give(std::move(a));
  HostBuffer b = pool.take(4 * kPage);
  pool.give(std::move(b));
}

TEST(BufferPool, TheAccountantIsALimitToo) {
  Accountant accountant(8 * kPage);
  BufferPool pool(accountant, Account::kStaging, 100 * kPage);
  HostBuffer other(accountant, Account::kDense, 4 * kPage);
  pool.give(pool.take(3 * kPage));
  EXPECT_TRUE(pool.can_take(4 * kPage)) << "the free buffer can be given back";
  EXPECT_FALSE(pool.can_take(5 * kPage));
  EXPECT_THROW(pool.take(5 * kPage), Error);
  HostBuffer fits = pool.take(4 * kPage);
  EXPECT_TRUE(fits);
  pool.give(std::move(fits));
}

TEST(BufferPool, OfNothingIsAlwaysThere) {
  Accountant accountant(0);
  BufferPool pool(accountant, Account::kStaging, 0);
  EXPECT_TRUE(pool.can_take(0));
  HostBuffer none = pool.take(0);
  EXPECT_FALSE(none);
  pool.give(std::move(none));
  EXPECT_EQ(pool.maps(), 0u);
}

TEST(BufferPool, RandomTrafficKeepsTheBooks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Accountant accountant(60 * kPage);
  BufferPool pool(accountant, Account::kStaging, 50 * kPage);
  std::vector<HostBuffer> held;
  for (int i = 0; i < 5000; ++i) {
    const Bytes bytes = 1 + random() % (10 * kPage);
    if (random() % 2 == 0 && pool.can_take(bytes)) {
      held.push_back(pool.take(bytes));
      EXPECT_EQ(held.back().size(), bytes);
      held.back().data()[bytes - 1] = std::byte{7};
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      pool.give(std::move(held.back()));
      held.pop_back();
    }
    Bytes in_use = 0;
    for (const HostBuffer& buffer : held) in_use += buffer.charged();
    ASSERT_EQ(pool.in_use(), in_use);
    ASSERT_EQ(accountant.used(), in_use + pool.free_bytes());
    ASSERT_LE(in_use + pool.free_bytes(), pool.limit());
  }
  for (HostBuffer& buffer : held) pool.give(std::move(buffer));
  pool.trim();
  EXPECT_EQ(accountant.used(), 0u);
}

TEST(BufferPool, ChargesMoveWithTheBufferAndComeBackWithIt) {
  Accountant accountant(10 * kPage);
  BufferPool pool(accountant, Account::kStaging, 10 * kPage);
  HostBuffer buffer = pool.take(3 * kPage);
  buffer.charge_to(Account::kExperts);
  EXPECT_EQ(accountant.used(Account::kStaging), 0u);
  EXPECT_EQ(accountant.used(Account::kExperts), 3 * kPage);
  EXPECT_EQ(accountant.peak(Account::kExperts), 3 * kPage);
  EXPECT_EQ(accountant.used(), 3 * kPage);
  pool.give(std::move(buffer));
  EXPECT_EQ(accountant.used(Account::kExperts), 0u);
  EXPECT_EQ(accountant.used(Account::kStaging), 3 * kPage);
}

TEST(BufferPool, ShrinksABufferInUse) {
  Accountant accountant(10 * kPage);
  BufferPool pool(accountant, Account::kStaging, 10 * kPage);
  HostBuffer buffer = pool.take(6 * kPage);
  std::fill_n(buffer.data(), buffer.size(), std::byte{5});
  pool.shrink(buffer, 2 * kPage - 7);
  EXPECT_EQ(buffer.size(), 2 * kPage - 7);
  EXPECT_EQ(buffer.charged(), 2 * kPage);
  EXPECT_EQ(pool.in_use(), 2 * kPage);
  EXPECT_EQ(accountant.used(), 2 * kPage);
  EXPECT_EQ(buffer.data()[buffer.size() - 1], std::byte{5});
  pool.give(std::move(buffer));
  buffer = pool.take(2 * kPage);
  EXPECT_EQ(buffer.data()[0], std::byte{5});  // reused under its new size
  EXPECT_EQ(pool.maps(), 1u);
  pool.give(std::move(buffer));
}

}  // namespace
}  // namespace sluice::device
