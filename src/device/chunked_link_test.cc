#include "device/chunked_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error_of.h"
#include "device/fake_clock.h"

namespace sluice::device {
namespace {

using sluice::testing::error_of;

constexpr Bytes kPart = 100;  // a chunk

// A unit that has several chunks under way. The test says when the first of them is over.
class SlowUnit {
 public:
  explicit SlowUnit(std::size_t most) : most_(most) {}

  std::unique_ptr<Mover> mover() { return std::make_unique<ItsMover>(*this); }
  // Targets of the chunks that were started, as offsets in chunks, in order.
  std::vector<std::uint64_t> started() const {
    const std::lock_guard lock(mutex_);
    return started_;
  }
  void wait_for_started(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_.size() >= count; });
  }
  void let_end(std::size_t count) {
    const std::lock_guard lock(mutex_);
    may_end_ += count;
    changed_.notify_all();
  }
  // Those of this target fail when they begin, or when they end.
  void fail_start(std::uint64_t target) { fails_at_start_ = target; }
  void fail_end(std::uint64_t target) { fails_at_end_ = target; }
  std::size_t most_seen() const {
    const std::lock_guard lock(mutex_);
    return most_seen_;
  }
  std::size_t under_way() const {
    const std::lock_guard lock(mutex_);
    return under_way_.size();
  }

 private:
  class ItsMover final : public Mover {
   public:
    explicit ItsMover(SlowUnit& unit) : unit_(unit) {}
    std::size_t most_under_way() const override { return unit_.most_; }
    void admit_this_thread() override {}
    void start(const LinkChunk& chunk) override {
      const std::lock_guard lock(unit_.mutex_);
      const std::uint64_t target = chunk.on_unit.value / kPart;
      unit_.started_.push_back(target);
      unit_.changed_.notify_all();
      if (target == unit_.fails_at_start_) throw Error(ErrorKind::kIo, "refused");
      unit_.under_way_.push_back(target);
      unit_.most_seen_ = std::max(unit_.most_seen_, unit_.under_way_.size());
    }
    std::optional<double> finish(bool) override {
      std::unique_lock lock(unit_.mutex_);
      unit_.changed_.wait(lock, [&] { return unit_.may_end_ > 0; });
      --unit_.may_end_;
      const std::uint64_t target = unit_.under_way_.front();
      unit_.under_way_.pop_front();
      if (target == unit_.fails_at_end_) throw Error(ErrorKind::kIo, "broken");
      return 0.5;
    }

   private:
    SlowUnit& unit_;
  };

  const std::size_t most_;
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::vector<std::uint64_t> started_;
  std::deque<std::uint64_t> under_way_;
  std::size_t may_end_ = 0, most_seen_ = 0;
  std::uint64_t fails_at_start_ = ~0ull, fails_at_end_ = ~0ull;
};

class PipelinedLink : public ::testing::Test {
 protected:
  void open(std::optional<double> bytes_per_s = {}) {
    LinkOptions options;
    options.chunk = kPart;
    options.bytes_per_s = bytes_per_s;
    link_.emplace(std::move(options), unit_.mover(), health_, clock_);
  }
  // Chunks of the copy go to `target`, the one behind it …
  Ticket send(std::uint64_t target, std::size_t chunks, Traffic traffic) {
    return link_->copy(std::span(data_).first(chunks * kPart), Address{nullptr, target * kPart}, traffic, {});
  }

  const std::vector<std::byte> data_ = std::vector<std::byte>(10 * kPart);
  SlowUnit unit_{3};
  Health health_;
  testing::FakeClock clock_;
  std::optional<ChunkedLink> link_;
};

using Targets = std::vector<std::uint64_t>;

TEST_F(PipelinedLink, HasAsManyChunksUnderWayAsTheUnitTakes) {
  open();
  const Ticket ticket = send(0, 5, Traffic::kDemand);
  unit_.wait_for_started(3);
  EXPECT_EQ(unit_.started(), (Targets{0, 1, 2}));
  EXPECT_EQ(link_->promote(ticket).moved, 3 * kPart);  // it is demand already
  unit_.let_end(1);
  unit_.wait_for_started(4);
  EXPECT_EQ(link_->counters()[Traffic::kDemand].bytes, kPart);
  unit_.let_end(4);
  ticket.event().wait();
  EXPECT_EQ(unit_.most_seen(), 3u);
  const LinkCounters counters = link_->counters();
  EXPECT_EQ(counters[Traffic::kDemand].copies, 1u);
  EXPECT_EQ(counters[Traffic::kDemand].bytes, 5 * kPart);
  EXPECT_EQ(counters.to_device.pieces, 5u);
  EXPECT_DOUBLE_EQ(counters.to_device.busy_s, 2.5);  // as the unit says
}

TEST_F(PipelinedLink, DemandComesBehindWhatIsUnderWay) {
  open();
  const Ticket prefetch = send(0, 5, Traffic::kPrefetch);
  unit_.wait_for_started(3);
  const Ticket demand = send(7, 2, Traffic::kDemand);
  unit_.let_end(7);
  prefetch.event().wait();
  demand.event().wait();
  EXPECT_EQ(unit_.started(), (Targets{0, 1, 2, 7, 8, 3, 4}));
}

TEST_F(PipelinedLink, AWithdrawnCopyEndsBehindItsLastChunk) {
  open();
  const Ticket ticket = send(0, 5, Traffic::kPrefetch);
  unit_.wait_for_started(3);
  EXPECT_EQ(link_->withdraw(ticket).stage, CopyStage::kUnderWay);
  const Ticket other = send(8, 1, Traffic::kUpdate);  // before the link may sleep behind the last chunk
  unit_.let_end(2);
  unit_.wait_for_started(4);
  EXPECT_FALSE(ticket.event().done());
  unit_.let_end(2);
  other.event().wait();
  ASSERT_TRUE(ticket.event().error());
  EXPECT_EQ(unit_.started(), (Targets{0, 1, 2, 8}));
  EXPECT_EQ(link_->counters()[Traffic::kPrefetch].withdrawn_bytes, 3 * kPart);
  EXPECT_EQ(link_->counters()[Traffic::kPrefetch].withdrawn, 1u);
}

TEST_F(PipelinedLink, ACopyThatFailsIsNotDoneBeforeItsOtherChunks) {
  for (const bool at_start : {false, true}) {
    SCOPED_TRACE(at_start);
    if (at_start)
      unit_.fail_start(4);
    else
      unit_.fail_end(1);
    open();
    const std::size_t before = unit_.started().size();
    const Ticket ticket = send(at_start ? 3 : 0, 5, Traffic::kDemand);
    if (at_start) {
      unit_.wait_for_started(before + 2);  // the first moves, and the second does not
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(unit_.started().size(), before + 2);
      EXPECT_FALSE(ticket.event().done());
      unit_.let_end(1);
    } else {
      unit_.wait_for_started(before + 3);
      unit_.let_end(1);
      unit_.wait_for_started(before + 4);
      unit_.let_end(1);  // fails
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_FALSE(ticket.event().done());
      unit_.let_end(2);
    }
    EXPECT_EQ(error_of([&] { ticket.event().wait(); }), at_start ? "refused" : "broken");
    EXPECT_EQ(unit_.under_way(), 0u);
    EXPECT_EQ(link_->counters()[Traffic::kDemand].failed, 1u);
    EXPECT_EQ(unit_.started().size(), before + (at_start ? 2 : 4));
    const Ticket next = send(9, 1, Traffic::kDemand);
    unit_.let_end(1);
    next.event().wait();
    link_.reset();
  }
}

TEST_F(PipelinedLink, OneThatGoesWaitsForWhatIsUnderWay) {
  open();
  const Ticket whole = send(0, 2, Traffic::kDemand), part = send(5, 3, Traffic::kDemand);
  const Signal never;
  const Ticket waits = link_->copy(std::span(data_).first(kPart), Address{nullptr, 9 * kPart},
                                   Traffic::kDemand, never.event());
  unit_.wait_for_started(3);
  std::thread ends([&] {
    // Its event comes from the link that goes, which begins no chunk any more.
    EXPECT_EQ(error_of([&] { waits.event().wait(); }), "the link was closed");
    unit_.let_end(3);
  });
  link_.reset();
  ends.join();
  EXPECT_EQ(unit_.under_way(), 0u);
  EXPECT_FALSE(whole.event().error());
  ASSERT_TRUE(part.event().error());
  EXPECT_EQ(part.event().error()->kind(), ErrorKind::kInterrupted);
}

TEST_F(PipelinedLink, WhatIsLimitedTakesTheTimeOfTheLimit) {
  open(50);  // bytes a second, so 2 s for a chunk that takes the unit 0.5 s
  unit_.let_end(5);
  const Ticket ticket = send(0, 5, Traffic::kDemand);
  ticket.event().wait();
  EXPECT_DOUBLE_EQ(clock_.seconds(), 10);
  const LinkCounters counters = link_->counters();
  EXPECT_DOUBLE_EQ(counters.to_device.busy_s, 10);
  EXPECT_EQ(counters.to_device.overruns, 0u);
  EXPECT_LE(unit_.most_seen(), 2u);
}

}  // namespace
}  // namespace sluice::device
