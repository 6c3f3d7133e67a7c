#include "device/page_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "device/accountant.h"
#include "device/host_buffer.h"

namespace sluice::device {
namespace {

const Bytes kPageBytes = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));

class SeenLocks final : public PageLock {
 public:
  bool lock(std::byte* data, Bytes bytes) override {
    if (refuses) return false;
    EXPECT_TRUE(ranges.emplace(data, bytes).second);
    // Locked pages are there.
    data[0] = data[bytes - 1] = std::byte{1};
    return true;
  }
  void unlock(std::byte* data) override {
    data[0] = std::byte{2};  // they are still mapped
    EXPECT_EQ(ranges.erase(data), 1u);
  }
  std::map<std::byte*, Bytes> ranges;
  bool refuses = false;
};

using Ranges = std::map<std::byte*, Bytes>;

TEST(PageLock, LocksBuffersThatCrossALinkAndNoOthers) {
  Accountant accountant(64 * kPageBytes);
  const HostBuffer before(accountant, Account::kExperts, 3 * kPageBytes - 5);
  const HostBuffer kv(accountant, Account::kKv, kPageBytes);
  SeenLocks locks;
  accountant.crossing().attach(locks);
  EXPECT_EQ(locks.ranges, (Ranges{{before.data(), 3 * kPageBytes}}));
  {
    const HostBuffer staging(accountant, Account::kStaging, 1), dense(accountant, Account::kDense, 1),
        activations(accountant, Account::kActivations, kPageBytes);
    EXPECT_EQ(locks.ranges, (Ranges{{before.data(), 3 * kPageBytes},
                                    {staging.data(), kPageBytes},
                                    {activations.data(), kPageBytes}}));
    EXPECT_EQ(accountant.crossing().locked().bytes, 5 * kPageBytes);
  }
  EXPECT_EQ(locks.ranges, (Ranges{{before.data(), 3 * kPageBytes}}));
  EXPECT_EQ(accountant.crossing().locked().bytes, 3 * kPageBytes);
  accountant.crossing().detach();
  EXPECT_TRUE(locks.ranges.empty());
  EXPECT_EQ(accountant.crossing().locked().bytes, 0u);
  const HostBuffer after(accountant, Account::kExperts, 1);
  EXPECT_TRUE(locks.ranges.empty());
}

TEST(PageLock, ABufferThatMovesStaysLocked) {
  Accountant accountant(64 * kPageBytes);
  SeenLocks locks;
  accountant.crossing().attach(locks);
  HostBuffer first(accountant, Account::kStaging, kPageBytes);
  std::byte* const data = first.data();
  HostBuffer second = std::move(first);
  second.charge_to(Account::kKv);
  EXPECT_EQ(locks.ranges, (Ranges{{data, kPageBytes}}));
  second.release();
  EXPECT_TRUE(locks.ranges.empty());
  accountant.crossing().detach();
}

TEST(PageLock, ABufferThatShrinksIsLockedAgain) {
  Accountant accountant(64 * kPageBytes);
  BufferPool pool(accountant, Account::kExperts, 32 * kPageBytes);
  SeenLocks locks;
  accountant.crossing().attach(locks);
  HostBuffer buffer = pool.take(4 * kPageBytes);
  buffer.data()[5] = std::byte{77};
  pool.shrink(buffer, 2 * kPageBytes - 7);
  EXPECT_EQ(locks.ranges, (Ranges{{buffer.data(), 2 * kPageBytes}}));
  EXPECT_EQ(buffer.data()[5], std::byte{77});
  EXPECT_EQ(accountant.crossing().locked().bytes, 2 * kPageBytes);
  pool.shrink(buffer, kPageBytes + 1);  // as many pages
  EXPECT_EQ(accountant.crossing().locked().bytes, 2 * kPageBytes);
  pool.give(std::move(buffer));
  EXPECT_EQ(locks.ranges.size(), 1u);  // free ones stay locked
  pool.trim();
  EXPECT_TRUE(locks.ranges.empty());
  accountant.crossing().detach();
}

TEST(PageLock, WhatIsRefusedIsCounted) {
  Accountant accountant(64 * kPageBytes);
  SeenLocks locks;
  locks.refuses = true;
  const HostBuffer before(accountant, Account::kExperts, 2 * kPageBytes);
  accountant.crossing().attach(locks);
  {
    const HostBuffer buffer(accountant, Account::kExperts, kPageBytes);
    LockedPages locked = accountant.crossing().locked();
    EXPECT_EQ(locked.bytes, 0u);
    EXPECT_EQ(locked.refused, 2u);
    EXPECT_EQ(locked.refused_bytes, 3 * kPageBytes);
    locks.refuses = false;
  }
  const HostBuffer good(accountant, Account::kExperts, kPageBytes);
  EXPECT_EQ(accountant.crossing().locked().bytes, kPageBytes);
  EXPECT_EQ(accountant.crossing().locked().refused, 2u);
  accountant.crossing().detach();
  EXPECT_TRUE(locks.ranges.empty());
}

}  // namespace
}  // namespace sluice::device
