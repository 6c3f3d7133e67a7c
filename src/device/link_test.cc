#include "device/link.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "base/error_of.h"
#include "device/each_device_test.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;
using testing::Barrier;

std::vector<std::byte> pattern(std::size_t bytes, unsigned salt) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 251 + salt);
  return data;
}

class LinkTest : public testing::EachDevice {
 protected:
  Link& link() { return device_->link(); }
};

TEST_P(LinkTest, CopiesThereAndBack) {
  for (const Bytes bytes : {Bytes{1}, Bytes{1000}, kMiB, 2 * kMiB + 5}) {
    const Block block = device_->memory().allocate(Account::kExperts, bytes + 7);
    const std::vector<std::byte> sent = pattern(bytes, 3);
    link().copy(sent, block.address() + 7, Traffic::kDemand).event().wait();
    std::vector<std::byte> back(bytes);
    link().copy_back(block.address() + 7, back, Traffic::kResult).event().wait();
    EXPECT_EQ(back, sent);
  }
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kDemand].copies, 4u);
  EXPECT_EQ(counters[Traffic::kDemand].bytes, 1 + 1000 + 3 * kMiB + 5);
  EXPECT_EQ(counters[Traffic::kResult].bytes, counters[Traffic::kDemand].bytes);
  // Chunks of 1 MiB, or over a GPU's link of 4 MiB.
  EXPECT_EQ(counters.to_device.pieces, GetParam().ends_with("gpu") ? 4u : 1u + 1 + 1 + 3);
  EXPECT_EQ(counters[Traffic::kPrefetch].copies, 0u);
}

TEST_P(LinkTest, ACopyOfNothingIsDone) {
  const Block block = device_->memory().allocate(Account::kExperts, 16);
  link().copy({}, block.address(), Traffic::kDemand).event().wait();
  EXPECT_TRUE(Ticket().event().done());
}

TEST_P(LinkTest, WhatWaitsForAnEventHoldsUpNobody) {
  const Block block = device_->memory().allocate(Account::kExperts, 200);
  const std::vector<std::byte> first = pattern(100, 1), second = pattern(100, 2);
  Signal read;
  const Ticket waiting = link().copy(first, block.address(), Traffic::kDemand, read.event());
  link().copy(second, block.address() + 100, Traffic::kUpdate).event().wait();
  EXPECT_FALSE(waiting.event().done());
  read.complete();
  waiting.event().wait();
  std::vector<std::byte> all = first;
  all.insert(all.end(), second.begin(), second.end());
  EXPECT_EQ(content(block), all);
}

TEST_P(LinkTest, CarriesTheErrorOfTheEventThatACopyWaitsFor) {
  const Block block = device_->memory().allocate(Account::kExperts, 100);
  const std::vector<std::byte> data(100, std::byte{9});
  Signal read;
  const Ticket ticket = link().copy(data, block.address(), Traffic::kDemand, read.event());
  read.fail(Error(ErrorKind::kCorrupt, "damaged"));
  EXPECT_EQ(error_of([&] { ticket.event().wait(); }), "damaged");
  EXPECT_EQ(link().counters()[Traffic::kDemand].failed, 1u);
  EXPECT_EQ(link().counters()[Traffic::kDemand].bytes, 0u);
}

TEST_P(LinkTest, WithdrawsWhatHasNotBegun) {
  const Block block = device_->memory().allocate(Account::kExperts, 100);
  const std::vector<std::byte> data(100, std::byte{9});
  Signal read;
  const Ticket ticket = link().copy(data, block.address(), Traffic::kPrefetch, read.event());
  const Progress progress = link().withdraw(ticket);
  EXPECT_EQ(progress.stage, CopyStage::kWaiting);
  EXPECT_EQ(progress.moved, 0u);
  ASSERT_TRUE(ticket.event().error());
  EXPECT_EQ(ticket.event().error()->kind(), ErrorKind::kInterrupted);
  read.complete();  // finds nothing to do
  EXPECT_EQ(link().withdraw(ticket).stage, CopyStage::kDone);
  EXPECT_EQ(link().promote(ticket).stage, CopyStage::kDone);
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kPrefetch].withdrawn, 1u);
  EXPECT_EQ(counters[Traffic::kPrefetch].bytes, 0u);
  EXPECT_EQ(counters[Traffic::kPrefetch].late, 0u);
}

TEST_P(LinkTest, OneThatGoesGivesUpItsCopies) {
  std::vector<std::byte> data(100);
  Signal never;
  Ticket ticket;
  {
    const Block block = device_->memory().allocate(Account::kExperts, 100);
    ticket = link().copy(data, block.address(), Traffic::kDemand, never.event());
  }
  device_.reset();
  ASSERT_TRUE(ticket.event().error());
  EXPECT_EQ(ticket.event().error()->kind(), ErrorKind::kInterrupted);
  never.complete();
}

TEST_P(LinkTest, AStreamAndTheLinkWaitForEachOther) {
  if (!functions_reach_memory()) GTEST_SKIP() << "a function of this program cannot reach a GPU's memory";
  const Block block = device_->memory().allocate(Account::kExperts, 1000);
  const std::vector<std::byte> sent = pattern(1000, 5);
  std::vector<std::byte> back(1000);
  Stream& stream = device_->compute();
  stream.wait(link().copy(sent, block.address(), Traffic::kDemand).event());
  stream.enqueue({[&](const Access& access) {
    std::byte* const data = access.data(block.address(), 1000);
    const auto invert = [data] {
      for (int i = 0; i < 1000; ++i) data[i] ^= std::byte{0xff};
    };
    if (access.queue().stream == nullptr) return invert();
    testing::FakeCuda::launch(access, invert);  // a GPU's queue waits for the copy, not who fills it
  }});
  link().copy_back(block.address(), back, Traffic::kResult, stream.record()).event().wait();
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(back[i], sent[i] ^ std::byte{0xff});
}

INSTANTIATE_TEST_SUITE_P(All, LinkTest, ::testing::ValuesIn(testing::devices()), testing::device_name);

// A link whose chunks are seen, and of which one copy can be made to stop or fail.
class WatchedLink : public ::testing::Test {
 protected:
  static constexpr Bytes kChunk = kMiB, kCopy = 3 * kChunk;

  void open(bool full_duplex = true) {
    EmulatedOptions options = testing::unpaced(24 * kMiB);
    options.spec.full_duplex = full_duplex;
    options.fault = [this](std::uint64_t copy, Bytes moved) {
      {
        const std::lock_guard lock(mutex_);
        chunks_.emplace_back(copy, moved / kChunk);
      }
      if (stops_at_ == std::pair(copy, moved / kChunk)) barrier_.stop_here();
      const auto fault = faults_.find({copy, moved / kChunk});
      return fault == faults_.end() ? Fault::kNone : fault->second;
    };
    device_ = make_emulated_device(std::move(options));
    block_ = device_->memory().allocate(Account::kExperts, 20 * kMiB);
  }
  Link& link() { return device_->link(); }
  Ticket send(Traffic traffic, const Event& after = {}) {
    return link().copy(data_, block_.address() + kCopy * (sent_++ % 6), traffic, after);
  }
  using Chunks = std::vector<std::pair<std::uint64_t, Bytes>>;  // copy, chunk

  std::mutex mutex_;
  Chunks chunks_;
  std::pair<std::uint64_t, Bytes> stops_at_{~0ull, 0};
  std::map<std::pair<std::uint64_t, Bytes>, Fault> faults_;
  Barrier barrier_;
  const std::vector<std::byte> data_ = pattern(kCopy, 1);
  int sent_ = 0;
  std::unique_ptr<Device> device_;
  Block block_;
};

TEST_F(WatchedLink, DemandOvertakesAPrefetchThatHasBegun) {
  stops_at_ = {0, 1};
  open();
  const Ticket prefetch = send(Traffic::kPrefetch);
  barrier_.wait_until_somebody_is_there();
  const Ticket update = send(Traffic::kUpdate), second = send(Traffic::kPrefetch),
               demand = send(Traffic::kDemand), result = send(Traffic::kResult);
  EXPECT_EQ(link().counters()[Traffic::kPrefetch].bytes, kChunk);
  barrier_.open();
  update.event().wait();
  EXPECT_EQ(chunks_, (Chunks{{0, 0},
                             {0, 1},
                             {3, 0},
                             {3, 1},
                             {3, 2},
                             {4, 0},
                             {4, 1},
                             {4, 2},
                             {0, 2},
                             {2, 0},
                             {2, 1},
                             {2, 2},
                             {1, 0},
                             {1, 1},
                             {1, 2}}));
  for (const Ticket& ticket : {prefetch, second, demand, result}) ticket.event().wait();
}

TEST_F(WatchedLink, APromotedPrefetchIsDemandFromItsNextChunkOn) {
  stops_at_ = {0, 0};
  open();
  const Ticket busy = send(Traffic::kDemand), first = send(Traffic::kPrefetch),
               second = send(Traffic::kPrefetch), update = send(Traffic::kUpdate);
  barrier_.wait_until_somebody_is_there();
  EXPECT_EQ(link().promote(update).stage, CopyStage::kWaiting);
  EXPECT_EQ(link().promote(busy).stage, CopyStage::kUnderWay);  // is demand already
  barrier_.open();
  second.event().wait();
  EXPECT_EQ(
      chunks_,
      (Chunks{
          {0, 0}, {0, 1}, {0, 2}, {3, 0}, {3, 1}, {3, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}}));
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kUpdate].late, 1u);
  EXPECT_EQ(counters[Traffic::kUpdate].bytes, 0u);
  EXPECT_EQ(counters[Traffic::kDemand].late, 0u);
  EXPECT_EQ(counters[Traffic::kDemand].bytes, 2 * kCopy);
  EXPECT_EQ(counters[Traffic::kDemand].copies, 2u);
  EXPECT_EQ(counters[Traffic::kPrefetch].copies, 2u);
}

// What a layer sends before it promotes copies that are under way is not held up by these.
TEST_F(WatchedLink, APromotedCopyGoesBehindWhatIsDemandAlready) {
  stops_at_ = {0, 0};
  open();
  const Ticket prefetch = send(Traffic::kPrefetch);
  barrier_.wait_until_somebody_is_there();
  const Ticket demand = send(Traffic::kDemand);
  EXPECT_EQ(link().promote(prefetch).stage, CopyStage::kUnderWay);
  const Ticket later = send(Traffic::kDemand);
  barrier_.open();
  for (const Ticket& ticket : {prefetch, demand, later}) ticket.event().wait();
  EXPECT_EQ(chunks_, (Chunks{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {0, 1}, {0, 2}, {2, 0}, {2, 1}, {2, 2}}));
}

TEST_F(WatchedLink, APromotionUnderWayCountsBytesByWhatTheCopyWas) {
  stops_at_ = {0, 1};
  open();
  const Ticket ticket = send(Traffic::kPrefetch);
  barrier_.wait_until_somebody_is_there();
  const Progress progress = link().promote(ticket);
  EXPECT_EQ(progress.stage, CopyStage::kUnderWay);
  EXPECT_EQ(progress.moved, 2 * kChunk);  // one of them is being moved
  barrier_.open();
  ticket.event().wait();
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kPrefetch].late, 1u);
  EXPECT_EQ(counters[Traffic::kPrefetch].bytes, kChunk);
  EXPECT_EQ(counters[Traffic::kDemand].bytes, 2 * kChunk);
}

TEST_F(WatchedLink, APromotedCopyStillWaitsForItsEvent) {
  open();
  Signal read;
  const Ticket ticket = send(Traffic::kUpdate, read.event());
  EXPECT_EQ(link().promote(ticket).stage, CopyStage::kWaiting);
  EXPECT_FALSE(ticket.event().done());
  read.complete();
  ticket.event().wait();
  EXPECT_EQ(link().counters()[Traffic::kDemand].copies, 1u);
}

TEST_F(WatchedLink, AWithdrawnCopyEndsBehindItsChunk) {
  stops_at_ = {0, 1};
  open();
  const Ticket ticket = send(Traffic::kPrefetch), other = send(Traffic::kUpdate);
  barrier_.wait_until_somebody_is_there();
  const Progress progress = link().withdraw(ticket);
  EXPECT_EQ(progress.stage, CopyStage::kUnderWay);
  EXPECT_EQ(progress.moved, 2 * kChunk);
  EXPECT_FALSE(ticket.event().done());  // its chunk is being moved
  EXPECT_EQ(link().withdraw(ticket).stage, CopyStage::kUnderWay);
  barrier_.open();
  other.event().wait();
  ASSERT_TRUE(ticket.event().error());
  EXPECT_EQ(chunks_, (Chunks{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}}));
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kPrefetch].withdrawn, 1u);
  EXPECT_EQ(counters[Traffic::kPrefetch].withdrawn_bytes, 2 * kChunk);
  EXPECT_EQ(counters[Traffic::kPrefetch].bytes, 2 * kChunk);
  EXPECT_EQ(counters[Traffic::kPrefetch].copies, 0u);
}

TEST_F(WatchedLink, AnOvertakenCopyIsWithdrawnAtOnce) {
  stops_at_ = {1, 0};
  open();
  Signal go;
  const Ticket prefetch = send(Traffic::kPrefetch, go.event());
  Signal go_demand;
  const Ticket demand = send(Traffic::kDemand, go_demand.event());
  // The demand becomes ready while the prefetch's first chunk is under way, or before.
  go.complete();
  go_demand.complete();
  barrier_.wait_until_somebody_is_there();
  const Bytes begun = link().withdraw(prefetch).moved;
  EXPECT_TRUE(prefetch.event().done());
  barrier_.open();
  demand.event().wait();
  EXPECT_EQ(link().counters()[Traffic::kPrefetch].withdrawn, begun < kCopy ? 1u : 0u);
  EXPECT_EQ(link().counters()[Traffic::kPrefetch].bytes, begun);
}

TEST_F(WatchedLink, AFailedCopyHarmsNoOther) {
  faults_[{1, 2}] = Fault::kCopyFails;
  open();
  const Ticket first = send(Traffic::kDemand), bad = send(Traffic::kDemand), last = send(Traffic::kDemand);
  last.event().wait();
  first.event().wait();
  ASSERT_TRUE(bad.event().error());
  EXPECT_EQ(bad.event().error()->kind(), ErrorKind::kIo);
  const LinkCounters counters = link().counters();
  EXPECT_EQ(counters[Traffic::kDemand].failed, 1u);
  EXPECT_EQ(counters[Traffic::kDemand].copies, 2u);
  EXPECT_FALSE(device_->lost());
}

TEST_F(WatchedLink, ALostDeviceDoesNothingMore) {
  faults_[{1, 1}] = Fault::kDeviceIsLost;
  open();
  Signal never;
  device_->compute().wait(never.event());
  const Ticket first = send(Traffic::kDemand), lost = send(Traffic::kDemand), behind = send(Traffic::kDemand);
  const std::string text = error_of([&] { behind.event().wait(); });
  EXPECT_NE(text.find("does not answer"), std::string::npos) << text;
  first.event().wait();
  EXPECT_EQ(error_of([&] { lost.event().wait(); }), text);
  ASSERT_TRUE(device_->lost());
  bool ran = false;
  never.complete();
  device_->compute().enqueue({[&](const Access&) { ran = true; }});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of([&] { device_->compute().synchronize(); }), text);
  EXPECT_EQ(error_of([&] { device_->compute().record().wait(); }), text);
  EXPECT_FALSE(ran);
  EXPECT_EQ(error_of([&] { send(Traffic::kUpdate).event().wait(); }), text);
}

TEST_F(WatchedLink, DirectionsShareALaneOnlyIfHalfDuplex) {
  for (const bool full : {true, false}) {
    block_.release();
    device_.reset();
    stops_at_ = {0, 0};
    open(full);
    const Ticket down = send(Traffic::kDemand);
    std::vector<std::byte> back(kCopy);
    const Ticket up = link().copy_back(block_.address() + 5 * kCopy, back, Traffic::kResult);
    if (full) up.event().wait();  // while the other direction stands still
    barrier_.open();
    down.event().wait();
    up.event().wait();
    const LinkCounters counters = link().counters();
    EXPECT_EQ(counters.to_device.pieces, full ? 3u : 6u);
    EXPECT_EQ(counters.from_device.pieces, full ? 3u : 6u);
  }
}

}  // namespace
}  // namespace sluice::device
