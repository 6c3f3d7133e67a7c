// Experts that a cache brings in though no event uses them: they arrive while nothing is demanded, and stay.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "fetch/memory/expert_store_fixture.h"

namespace sluice::fetch {
namespace {

using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

constexpr Parts kPlanes = Part::kSm | Part::kExp;

class ExpertUpdates : public testing::ExpertStoreTest {
 protected:
  // Begins events without experts until the store holds what was decided, or gives up.
  void settle(const std::map<ExpertId, Parts>& decided) {
    for (int tries = 0; tries < 2000; ++tries) {
      bool there = true;
      for (const auto& [id, parts] : decided) there = there && store_->parts(id) == parts;
      if (there) return;
      run({});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

TEST_F(ExpertUpdates, ArriveBehindTheEventAndStay) {
  for (const bool packs : {false, true}) {
    store_.reset();
    compute_packed_ = packs;
    open(packed("native", 4, packs), 4, 4);
    EventOutcome outcome = misses({0}, Part::kFull);
    outcome.updates.push_back({{0, 3}, Part::kFull});
    outcome.updates.push_back({{0, 4}, kPlanes});
    EXPECT_EQ(run(outcome).size(), 1u);  // updates are not handed out
    settle({{{0, 0}, Part::kFull}, {{0, 3}, Part::kFull}, {{0, 4}, kPlanes}});
    EXPECT_EQ(store_->parts({0, 3}), Parts(Part::kFull));
    EXPECT_EQ(store_->parts({0, 4}), kPlanes);
    EXPECT_EQ(store_->counters().update_bytes, store_->disk_bytes({0, 3}) + store_->disk_bytes({0, 4}));
    EXPECT_EQ(store_->counters().prefetch_bytes, 0u);
    outcome = {};
    outcome.hits.push_back({{0, 3}, {}, Part::kFull});
    outcome.hits.push_back({{0, 4}, {}, kPlanes});
    outcome.evicted = {{{0, 3}, Part::kFull}, {{0, 4}, kPlanes}};
    const auto views = run(outcome);
    EXPECT_EQ(reads_.bytes, 0u);
    for (const std::uint16_t e : {3, 4}) EXPECT_EQ(views.at({0, e}), truth({0, e}));
  }
}

TEST_F(ExpertUpdates, AnEvictionForgetsWhatHasNotBegun) {
  open(packed("zstd"), 1, 1);  // no room to read ahead beside a demanded expert
  EventOutcome outcome = misses({0}, Parts());
  outcome.updates.push_back({{0, 3}, Part::kFull});
  run(outcome);
  outcome = misses({1}, Parts());
  outcome.evicted = {{{0, 3}, Part::kFull}};
  run(outcome);
  settle({{{0, 3}, Parts()}});
  EXPECT_EQ(resident_bytes(), 0u);
}

// Random events, updates, evictions and faults: views are right, nothing stays that was not decided, and
// without faults all that was decided arrives.
TEST_F(ExpertUpdates, RandomUpdatesNeverShowInTheViews) {
  constexpr std::uint16_t kExperts = 6;  // experts of a layer
  for (const bool faults : {false, true}) {
    const std::uint64_t seed = faults ? 41 : 40;
    std::cout << "seed " << seed << '\n';
    std::mt19937_64 random(seed);
    std::atomic<bool> failing{false};
    std::atomic<unsigned> reads{0};
    FetchOptions options;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner),
                                [&](const DiskRead&) { return failing && ++reads % 7 == 0 ? EIO : 0; });
    };
    store_.reset();
    open(packed("zstd"), 4, 3, options);
    const Bytes capacity = 4 * store_->facts().largest_resident;
    std::map<ExpertId, std::vector<std::byte>> truths;
    std::map<ExpertId, Parts> held;
    for (std::uint16_t e = 0; e < kExperts; ++e) {
      truths[{0, e}] = truth({0, e});
      held[{0, e}] = {};
    }
    failing = faults;
    std::size_t failed = 0, updates = 0;
    for (int step = 0; step < 300; ++step) {
      EventOutcome outcome;
      Bytes used = 0;
      std::map<ExpertId, Parts> after = held;
      std::vector<ExpertId> event;
      for (auto& [id, parts] : after) {
        if (random() % 3 == 0) {
          event.push_back(id);
        } else if (!parts.empty() && random() % 3 == 0) {
          outcome.evicted.push_back({id, parts});
          parts = {};
        }
      }
      for (const auto& [id, parts] : after) used += store_->sizes().bytes(id).of(parts);
      for (const ExpertId id : event) {
        const bool keep = used + store_->facts().largest_resident <= capacity && random() % 2 == 0;
        const Parts before = held[id], now = keep ? Parts(Part::kFull) : Parts();
        if (!before.empty() && now.empty()) outcome.evicted.push_back({id, before});
        used = used - store_->sizes().bytes(id).of(before) + store_->sizes().bytes(id).of(now);
        (before.empty() ? outcome.misses : outcome.hits).push_back({id, now, before});
        after[id] = now;
      }
      for (auto& [id, parts] : after) {
        if (!parts.empty() || std::ranges::find(event, id) != event.end() || random() % 3 != 0 ||
            used + store_->facts().largest_resident > capacity)
          continue;
        outcome.updates.push_back({id, Part::kFull});
        parts = Part::kFull;
        used += store_->sizes().bytes(id).of(parts);
        ++updates;
      }
      held = after;
      try {
        for (const auto& [id, view] : run(outcome)) ASSERT_EQ(view, truths.at(id)) << id.index;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kIo);
        ++failed;
      }
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      for (const auto& [id, parts] : held) ASSERT_TRUE((store_->parts(id) - parts).empty()) << id.index;
      ASSERT_LE(resident_bytes(), capacity);
    }
    EXPECT_GT(updates, 50u);
    EXPECT_GT(store_->counters().update_bytes, 0u);
    EXPECT_EQ(failed > 0, faults);
    failing = false;
    if (!faults) {
      settle(held);
      expect_stays(held, Stays::kAll);
    }
    store_.reset();
    EXPECT_EQ(accountant_.used(), 0u);
  }
}

}  // namespace
}  // namespace sluice::fetch
