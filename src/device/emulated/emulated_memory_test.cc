#include "device/emulated/emulated_memory.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "device/host_memory.h"
#include "device/space.h"

namespace sluice::device {
namespace {

constexpr Bytes kUnit = FirstFit::kAlignment;

TEST(EmulatedMemory, IsExactlyAsLargeAsItSays) {
  EmulatedMemory memory(8 * kUnit + 3, Guard::kNone);
  EXPECT_EQ(memory.budget(), 8 * kUnit);
  const Block all = memory.allocate(Account::kExperts, 8 * kUnit);
  EXPECT_EQ(all.size(), 8 * kUnit);
  EXPECT_EQ(all.address().space, &memory.space());
  EXPECT_EQ(memory.accountant().available(), 0u);
  EXPECT_THROW(memory.allocate(Account::kStaging, 1), Error);
}

TEST(EmulatedMemory, ABlockGivesItselfBack) {
  EmulatedMemory memory(8 * kUnit, Guard::kNone);
  Block block = memory.allocate(Account::kKv, kUnit + 1);
  EXPECT_EQ(memory.accountant().used(Account::kKv), 2 * kUnit);
  EXPECT_EQ(memory.cost(kUnit + 1), 2 * kUnit);
  Block moved = std::move(block);
  EXPECT_FALSE(block);
  moved = memory.allocate(Account::kStaging, kUnit);  // takes the new one first
  EXPECT_EQ(memory.accountant().used(Account::kKv), 0u);
  EXPECT_EQ(memory.accountant().used(), kUnit);
  moved.release();
  EXPECT_EQ(memory.accountant().used(), 0u);
  EXPECT_EQ(memory.accountant().peak(), 3 * kUnit);
  EXPECT_FALSE(memory.allocate(Account::kKv, 0));
}

TEST(EmulatedMemory, SaysWhetherTheBytesOrTheirFormAreTooSmall) {
  EmulatedMemory memory(4 * kUnit, Guard::kNone);
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(memory.allocate(Account::kExperts, kUnit));
  const auto refusal = [&](Bytes bytes) {
    return sluice::testing::error_of([&] { memory.allocate(Account::kStaging, bytes); });
  };
  const std::string full = refusal(2 * kUnit);
  EXPECT_NE(full.find("too small for staging"), std::string::npos) << full;
  EXPECT_NE(full.find("experts 1.00 KiB"), std::string::npos) << full;
  blocks[0].release();
  blocks[2].release();
  const std::string divided = refusal(2 * kUnit);
  EXPECT_NE(divided.find("too divided"), std::string::npos) << divided;
  EXPECT_NE(divided.find("512 B free, at most 256 B together"), std::string::npos) << divided;
  EXPECT_EQ(memory.accountant().used(), 2 * kUnit);
}

// Over random blocks: none overlap, and the accounts hold exactly what the blocks cost.
TEST(EmulatedMemory, AccountsForEveryBlock) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  EmulatedMemory memory(64 * kUnit, Guard::kNone);
  struct Held {
    Block block;
    Account account;
  };
  std::vector<Held> held;
  for (int step = 0; step < 2000; ++step) {
    if (random() % 5 < 3) {
      const auto account = static_cast<Account>(random() % kAccountCount);
      const Bytes bytes = 1 + random() % (10 * kUnit);
      try {
        held.push_back({memory.allocate(account, bytes), account});
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::kBudget);
      }
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
    }
    std::map<Bytes, Bytes> ranges;
    Bytes total = 0;
    std::array<Bytes, kAccountCount> by_account{};
    for (const Held& one : held) {
      ranges[memory.arena().offset(one.block.address())] = one.block.size();
      total += memory.cost(one.block.size());
      by_account[static_cast<std::size_t>(one.account)] += memory.cost(one.block.size());
    }
    ASSERT_EQ(ranges.size(), held.size());
    Bytes end = 0;
    for (const auto& [offset, size] : ranges) {
      ASSERT_GE(offset, end);
      end = offset + size;
    }
    ASSERT_LE(end, memory.budget());
    ASSERT_EQ(memory.accountant().used(), total);
    for (std::size_t i = 0; i < kAccountCount; ++i)
      ASSERT_EQ(memory.accountant().used(static_cast<Account>(i)), by_account[i]);
  }
}

TEST(HostMemory, HasAddressesOfTheProcess) {
  Accountant accountant(kMiB);
  HostMemory memory(accountant);
  {
    const Block block = memory.allocate(Account::kStaging, 5000);
    EXPECT_EQ(accountant.used(Account::kStaging), memory.cost(5000));
    const Access access(memory);
    std::byte* const data = access.data(block.address() + 10, 4990);
    EXPECT_EQ(data, host_space().pointer(block.address() + 10));
    EXPECT_DEATH(access.data(block.address() + 10, 4991), "");
  }
  EXPECT_EQ(accountant.used(), 0u);
  EXPECT_THROW(memory.allocate(Account::kStaging, 2 * kMiB), Error);
}

}  // namespace
}  // namespace sluice::device
