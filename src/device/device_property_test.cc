// Random copies, operations, waits, promotions and withdrawals over a few blocks, compared with a plain model
// that does everything at once.
#include <gtest/gtest.h>

#include <deque>
#include <iostream>
#include <random>

#include "device/each_device_test.h"
#include "device/fake_clock.h"

namespace sluice::device {
namespace {

constexpr Bytes kMostBytes = 40000;

// A block on the device and what is to be in it. What touches it next waits for `last`.
struct Mirror {
  Block block;
  std::vector<std::byte> content;
  bool known = true;  // false: a copy into it was given up or failed
  Event last = {};
  int touched = 0;  // this many times
};

// Is done when both are, and carries no error.
Event both(const Event& first, const Event& second) {
  auto signal = std::make_shared<Signal>();
  const Event event = signal->event();
  first.on_done(
      [signal, second](const auto&) { second.on_done([signal](const auto&) { signal->complete(); }); });
  return event;
}

class Play {
 public:
  enum class Unit { kFullDuplex, kHalfDuplex, kGpu };  // emulated, or with calls of CUDA that are played

  Play(std::uint64_t seed, bool faults, Unit unit) : random_(seed), faults_(faults) {
    std::function<Fault(std::uint64_t, Bytes)> fault;
    if (faults)
      fault = [](std::uint64_t copy, Bytes moved) {
        return (copy * 7 + moved) % 11 == 3 ? Fault::kCopyFails : Fault::kNone;
      };
    constexpr double kBytesPerSecond = 1e6;  // so that chunks are of 16 KiB
    if (unit == Unit::kGpu) {
      CudaOptions options{.memory = 2 * kMiB, .link_bytes_per_s = kBytesPerSecond};
      options.api = &fake_cuda_;
      options.clock = &clock_;
      options.fault = std::move(fault);
      device_ = make_cuda_device(std::move(options));
    } else {
      EmulatedOptions options = testing::unpaced(2 * kMiB);
      options.spec.full_duplex = unit == Unit::kFullDuplex;
      options.spec.link_bytes_per_s = kBytesPerSecond;
      options.clock = &clock_;
      options.fault = std::move(fault);
      device_ = make_emulated_device(std::move(options));
    }
    for (int i = 0; i < 6; ++i) {
      const Bytes bytes = 1 + random_() % kMostBytes;
      mirrors_.push_back(
          {device_->memory().allocate(Account::kExperts, bytes), std::vector<std::byte>(bytes)});
      overwrite(mirrors_.back());
    }
  }

  void go() {
    for (int step = 0; step < 400; ++step) {
      Mirror& mirror = mirrors_[random_() % mirrors_.size()];
      switch (random_() % 5) {
        case 0:
          overwrite(mirror);
          break;
        case 1:
          invert(mirror);
          break;
        case 2:
          read_back(mirror);
          break;
        case 3:
          change_mind();
          break;
        case 4:
          if (!held_.empty()) {
            held_.front().complete();
            held_.pop_front();
          }
          break;
      }
    }
    for (Mirror& mirror : mirrors_) read_back(mirror);
    for (Signal& signal : held_) signal.complete();
    held_.clear();
    device_->compute().synchronize();
    for (Read& read : reads_) {
      read.ticket.event().settled().wait();
      if (read.ticket.event().error()) {
        ASSERT_TRUE(faults_);
      } else if (read.known) {
        ASSERT_TRUE(read.bytes == read.expected);
        ++compared_;
      }
    }
    check_counters();
  }
  std::size_t compared() const { return compared_; }

 private:
  struct Read {
    Ticket ticket;
    std::vector<std::byte> bytes, expected;
    bool known;
  };
  struct Sent {
    Ticket ticket;
    std::size_t mirror;
    int touched;   // the mirror, by then
    Event before;  // what it waited for
  };

  // What a copy waits for: what was done to the block, and sometimes a signal of the host's.
  Event after(const Mirror& mirror) {
    if (random_() % 4 != 0) return mirror.last.settled();
    held_.emplace_back();
    return both(held_.back().event(), mirror.last);
  }

  void overwrite(Mirror& mirror) {
    std::vector<std::byte>& data = sources_.emplace_back(mirror.content.size());
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_());
    const auto traffic = static_cast<Traffic>(random_() % kTraffics);
    const Event before = mirror.last;
    const Ticket ticket = device_->link().copy(data, mirror.block.address(), traffic, after(mirror));
    touch(mirror, ticket.event());
    mirror.content = data;
    mirror.known = !faults_;
    sent_.push_back({ticket, static_cast<std::size_t>(&mirror - mirrors_.data()), mirror.touched, before});
  }

  void touch(Mirror& mirror, const Event& event) {
    mirror.last = event;
    ++mirror.touched;
  }

  void invert(Mirror& mirror) {
    Stream& stream = random_() % 2 == 0 ? device_->compute() : device_->predict();
    stream.wait(mirror.last.settled());
    stream.enqueue({[address = mirror.block.address(), bytes = mirror.block.size()](const Access& access) {
      std::byte* const data = access.data(address, bytes);
      const auto work = [data, bytes] {
        for (Bytes i = 0; i < bytes; ++i) data[i] = ~data[i];
      };
      if (access.queue().stream == nullptr) return work();
      testing::FakeCuda::launch(access, work);
    }});
    touch(mirror, stream.record());
    for (std::byte& byte : mirror.content) byte = ~byte;
  }

  void read_back(Mirror& mirror) {
    reads_.push_back({{}, std::vector<std::byte>(mirror.content.size()), mirror.content, mirror.known});
    reads_.back().ticket = device_->link().copy_back(mirror.block.address(), reads_.back().bytes,
                                                     Traffic::kResult, after(mirror));
    touch(mirror, reads_.back().ticket.event());
  }

  // Promotes the last copy into some block, or withdraws it if nothing has touched the block since.
  void change_mind() {
    if (sent_.empty()) return;
    const Sent sent = sent_.back();
    sent_.pop_back();
    Mirror& mirror = mirrors_[sent.mirror];
    if (random_() % 2 == 0 || mirror.touched != sent.touched) {
      device_->link().promote(sent.ticket);
      return;
    }
    const Progress progress = device_->link().withdraw(sent.ticket);
    EXPECT_LE(progress.moved, mirror.content.size());
    if (progress.stage == CopyStage::kDone) return;
    ++withdrawn_;
    mirror.known = false;
    // It no longer waits for what it was to wait for.
    touch(mirror, both(sent.before, sent.ticket.event()));
  }

  void check_counters() {
    const LinkCounters counters = device_->link().counters();
    std::uint64_t ended = 0, failed = 0, withdrawn = 0;
    Bytes bytes = 0, in_vain = 0, asked = 0;
    for (const TrafficCounters& one : counters.by_traffic) {
      ended += one.copies + one.withdrawn + one.failed;
      failed += one.failed;
      withdrawn += one.withdrawn;
      bytes += one.bytes;
      in_vain += one.withdrawn_bytes;
    }
    for (const auto& source : sources_) asked += source.size();
    for (const Read& read : reads_) asked += read.bytes.size();
    EXPECT_EQ(ended, sources_.size() + reads_.size());
    EXPECT_LE(withdrawn, withdrawn_);  // some are withdrawn in their last chunk, or fail
    EXPECT_LE(in_vain, bytes);
    EXPECT_LE(bytes, asked);
    if (faults_) {
      EXPECT_GT(failed, 0u);
    } else {
      EXPECT_EQ(failed, 0u);
      EXPECT_EQ(withdrawn, withdrawn_);
      if (withdrawn == 0) {
        EXPECT_EQ(bytes, asked);
      }
    }
  }

  testing::FakeClock clock_;
  testing::FakeCuda fake_cuda_;
  std::mt19937_64 random_;
  const bool faults_;
  std::deque<std::vector<std::byte>> sources_;  // stay where they are
  std::deque<Read> reads_;
  std::deque<Signal> held_;
  std::vector<Sent> sent_;
  std::size_t compared_ = 0, withdrawn_ = 0;
  std::unique_ptr<Device> device_;
  std::vector<Mirror> mirrors_;
};

TEST(DeviceProperty, EndsAsAPlainModelDoes) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::size_t compared = 0;
  for (int round = 0; round < 36; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Play play(seed + static_cast<std::uint64_t>(round), round % 3 == 2,
              static_cast<Play::Unit>(round / 3 % 3));
    play.go();
    if (HasFatalFailure()) return;
    compared += play.compared();
  }
  std::cout << compared << " reads compared\n";
  EXPECT_GT(compared, 150u);
}

}  // namespace
}  // namespace sluice::device
