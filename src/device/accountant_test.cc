#include "device/accountant.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/error.h"

namespace sluice::device {
namespace {

TEST(Accountant, KeepsTotalsAndPeaksByName) {
  Accountant accountant(1000);
  accountant.charge(Account::kKv, 300);
  accountant.charge(Account::kDense, 500);
  EXPECT_EQ(accountant.used(), 800u);
  EXPECT_EQ(accountant.available(), 200u);
  accountant.release(Account::kKv, 300);
  accountant.charge(Account::kExperts, 100);
  EXPECT_EQ(accountant.used(), 600u);
  EXPECT_EQ(accountant.used(Account::kKv), 0u);
  EXPECT_EQ(accountant.used(Account::kDense), 500u);
  EXPECT_EQ(accountant.peak(), 800u);
  EXPECT_EQ(accountant.peak(Account::kKv), 300u);
  EXPECT_EQ(accountant.peak(Account::kExperts), 100u);
  EXPECT_EQ(accountant.budget(), 1000u);
}

TEST(Accountant, TheLastByteFitsAndTheNextDoesNot) {
  Accountant accountant(1000);
  EXPECT_TRUE(accountant.try_charge(Account::kKv, 1000));
  EXPECT_FALSE(accountant.try_charge(Account::kKv, 1));
  EXPECT_TRUE(accountant.try_charge(Account::kKv, 0));
  EXPECT_EQ(accountant.used(), 1000u);
}

TEST(Accountant, HugeChargesDoNotWrapRound) {
  Accountant accountant(1000);
  accountant.charge(Account::kKv, 10);
  EXPECT_FALSE(accountant.try_charge(Account::kKv, ~Bytes{0}));
  EXPECT_FALSE(accountant.try_charge(Account::kKv, ~Bytes{0} - 5));
}

TEST(Accountant, RefusalSaysWhoHowMuchWhatIsLeftAndTheLedger) {
  Accountant accountant(10 * kMiB);
  accountant.charge(Account::kDense, 7 * kMiB);
  try {
    accountant.charge(Account::kKv, 4 * kMiB);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBudget);
    const std::string text = e.what();
    for (const char* part : {"kv", "4.00 MiB", "3.00 MiB", "10.00 MiB", "dense 7.00 MiB", "--memory"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
  }
  EXPECT_EQ(accountant.used(), 7 * kMiB);
}

TEST(Accountant, LedgerNamesEveryAccount) {
  Accountant accountant(kGiB);
  accountant.charge(Account::kProcess, 9 * kMiB);
  EXPECT_EQ(accountant.ledger(),
            "process 9.00 MiB, dense 0 B, experts 0 B, kv 0 B, activations 0 B, staging 0 B, tables 0 B");
  EXPECT_EQ(account_name(Account::kTables), "tables");
  accountant.charge(Account::kServe, kMiB);
  EXPECT_TRUE(accountant.ledger().ends_with("tables 0 B, serve 1.00 MiB")) << accountant.ledger();
}

TEST(Accountant, ManyThreadsNeverExceedTheBudget) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Accountant accountant(10'000);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&accountant, t, seed] {
        std::mt19937 random(seed + t);
        const auto account = static_cast<Account>(t);
        Bytes held = 0;
        for (int i = 0; i < 5000; ++i) {
          const Bytes bytes = random() % 4000;
          if (held > 0 && random() % 2 == 0) {
            accountant.release(account, held);
            held = 0;
          } else if (accountant.try_charge(account, bytes)) {
            held += bytes;
          }
        }
        accountant.release(account, held);
      });
    }
  }
  EXPECT_EQ(accountant.used(), 0u);
  EXPECT_LE(accountant.peak(), 10'000u);
  EXPECT_GT(accountant.peak(), 0u);
}

TEST(AccountantDeathTest, ReleasingMoreThanWasChargedIsOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Accountant accountant(1000);
  accountant.charge(Account::kKv, 10);
  EXPECT_DEATH(accountant.release(Account::kKv, 11), "internal error");
  EXPECT_DEATH(accountant.release(Account::kDense, 1), "internal error");
}

}  // namespace
}  // namespace sluice::device
