// Every legal change of state, at random, under a tiny budget with four decoding threads: the views equal the
// checkpoint's words, exactly the missing parts are read, and every byte is accounted for.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "fetch/memory/expert_store_fixture.h"

namespace sluice::fetch {
namespace {

using experts::Admission;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

constexpr Parts kC = Part::kSm | Part::kExp;

// Any order of tasks in any blocks.
class RandomScheduler final : public experts::Scheduler {
 public:
  explicit RandomScheduler(std::uint64_t seed) : random_(seed) {}
  void order(std::span<const experts::Task> tasks, const experts::ScheduleCosts&,
             experts::Schedule& out) override {
    out.order.resize(tasks.size());
    std::iota(out.order.begin(), out.order.end(), 0u);
    std::shuffle(out.order.begin(), out.order.end(), random_);
    out.block_end.clear();
    for (std::uint32_t end = 1; end <= tasks.size(); ++end)
      if (end == tasks.size() || random_() % 3 == 0) out.block_end.push_back(end);
  }
  std::string name() const override { return "random"; }

 private:
  std::mt19937_64 random_;
};

class ResidencyStates : public testing::ExpertStoreTest {
 protected:
  // One random event. `held` is the logical residency, kept up to date.
  EventOutcome event(std::map<ExpertId, Parts>& held, Bytes capacity, std::mt19937_64& random) {
    EventOutcome outcome;
    std::vector<ExpertId> ids;
    for (const auto& [id, parts] : held) ids.push_back(id);
    std::shuffle(ids.begin(), ids.end(), random);
    const std::size_t used = random() % (ids.size() + 1);
    // Other experts lose some or all of their parts now and then.
    for (std::size_t i = used; i < ids.size(); ++i) {
      Parts& parts = held[ids[i]];
      if (parts.empty() || random() % 2 == 0) continue;
      if (parts == Parts(Part::kFull) && random() % 2 == 0) {
        outcome.reduced.push_back(ids[i]);
        parts = Part::kSm;
        continue;
      }
      const Parts lost =
          parts == kC && random() % 2 == 0 ? Parts(random() % 2 == 0 ? Part::kSm : Part::kExp) : parts;
      outcome.evicted.push_back({ids[i], lost});
      parts = parts - lost;
    }
    Bytes resident = 0;
    for (std::size_t i = used; i < ids.size(); ++i) resident += size(ids[i], held[ids[i]]);
    ids.resize(used);
    std::sort(ids.begin(), ids.end());
    for (ExpertId id : ids) {
      const Parts before = held[id];
      const std::vector<Parts> choices =
          before.has(Part::kFull) ? std::vector<Parts>{Part::kFull, Part::kSm, Parts()}
                                  : std::vector<Parts>{Part::kFull, kC, Part::kSm, Part::kExp, Parts()};
      Parts after = choices[random() % choices.size()];
      if (resident + size(id, after) > capacity) after = {};
      resident += size(id, after);
      if (const Parts left = before - after; !left.empty()) outcome.evicted.push_back({id, left});
      (experts::is_computable(before) ? outcome.hits : outcome.misses).push_back({id, after, before});
      held[id] = after;
    }
    return outcome;
  }

  // Events here have experts of several layers: the store accepts that.
  std::map<ExpertId, std::vector<std::byte>> truths() {
    std::map<ExpertId, std::vector<std::byte>> all;
    for (const auto& [id, parts] : all_missing()) all[id] = truth(id);
    return all;
  }
};

TEST_F(ResidencyStates, RandomEventsReadExactlyWhatIsMissingAndKeepExactlyWhatIsWanted) {
  int round = 0;
  // Codec, keep_columns, and whether kernels compute with the stored form directly.
  const std::tuple<const char*, bool, bool> kinds[] = {{"zstd", false, false},
                                                       {"lz4", false, false},
                                                       {"native", false, false},
                                                       {"native", true, false},
                                                       {"native", true, true}};
  for (const auto& [codec, keep_columns, compute_packed] : kinds) {
    for (const unsigned chunks : {1u, 3u}) {
      const std::uint64_t seed = 77 + static_cast<std::uint64_t>(round++);
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      std::atomic<Bytes> asked{0};
      const FetchOptions options = counting_reads(asked);
      store_.reset();
      compute_packed_ = compute_packed;
      open(packed(codec, chunks, keep_columns), 3, 1 + random() % 3, options);
      const Bytes capacity = 3 * store_->facts().largest_resident;
      const Bytes budget = accountant_.used() + capacity + 3 * store_->staging_needs().least;
      scheduler_ = std::make_unique<RandomScheduler>(seed);
      const auto truth = truths();
      auto held = all_missing();
      for (int step = 0; step < 150; ++step) {
        const auto before = held;
        const EventOutcome outcome = event(held, capacity, random);
        Bytes expected = 0;
        std::size_t partial = 0, reads = 0;
        asked = 0;
        for (const auto* list : {&outcome.hits, &outcome.misses}) {
          for (const Admission& used : *list) {
            if (used.before.has(Part::kFull)) continue;
            expected += disk(used.id, kC - used.before);
            reads += used.before != kC;
            partial += used.before != kC && !used.before.empty();
          }
        }
        const auto views = run(outcome);
        EXPECT_EQ(asked, expected) << "at the file";
        EXPECT_EQ(reads_.bytes, expected);
        EXPECT_EQ(reads_.experts, reads);
        EXPECT_EQ(reads_.partial, partial);
        EXPECT_EQ(views.size(), outcome.hits.size() + outcome.misses.size());
        for (const auto& [id, view] : views) ASSERT_EQ(view, truth.at(id)) << id.layer << "/" << id.index;
        ASSERT_NO_FATAL_FAILURE(expect_stays(held, Stays::kAll));
        EXPECT_LE(accountant_.peak(), budget);
      }
      store_.reset();
      EXPECT_EQ(accountant_.used(), 0u);
    }
  }
}

TEST_F(ResidencyStates, AFailedReadFailsItsEventOnlyAndTheNextOneRepairsIt) {
  const std::uint64_t seed = 4711;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::atomic<int> until_fault{-1};
  FetchOptions options;
  options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner),
                              [&](const DiskRead&) { return until_fault-- == 0 ? EIO : 0; });
  };
  open(packed("zstd"), 3, 2, options);
  const Bytes capacity = 3 * store_->facts().largest_resident;
  scheduler_ = std::make_unique<RandomScheduler>(seed);
  const auto truth = truths();
  auto held = all_missing();
  int failures = 0;
  for (int step = 0; step < 300; ++step) {
    const EventOutcome outcome = event(held, capacity, random);
    until_fault = random() % 2 == 0 ? static_cast<int>(random() % 12) : -1;
    try {
      for (const auto& [id, view] : run(outcome)) ASSERT_EQ(view, truth.at(id));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_TRUE(error.offset().has_value());
      ++failures;
    }
    ASSERT_NO_FATAL_FAILURE(expect_stays(held, Stays::kAtMost));
  }
  EXPECT_GT(failures, 20);
}

class Prefetches : public ResidencyStates, public ::testing::WithParamInterface<const char*> {};

TEST_P(Prefetches, SaveReadsAndChangeNothingElse) {
  const std::uint64_t seed = 99;
  const std::string codec = GetParam();
  compute_packed_ = codec == "native";
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::atomic<Bytes> asked{0};
  const FetchOptions options = counting_reads(asked);
  open(packed(codec, 4, compute_packed_), 3, 4, options);
  const Bytes capacity = 3 * store_->facts().largest_resident;
  scheduler_ = std::make_unique<RandomScheduler>(seed);
  const auto truth = truths();
  auto held = all_missing();
  std::uint64_t used = 0;
  Bytes planned = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<experts::PartRequest> requests;
    for (const auto& [id, parts] : held)
      if (step == 0 || random() % 3 == 0) requests.push_back({id, Part::kFull});
    std::shuffle(requests.begin(), requests.end(), random);
    store_->prefetch(requests);
    // An event may need a part before its prefetch was given to the disk. Not this one's.
    while (step == 0 && asked == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    const EventOutcome outcome = event(held, capacity, random);
    const auto views = run(outcome);
    for (const auto& [id, view] : views) ASSERT_EQ(view, truth.at(id)) << id.layer << "/" << id.index;
    EXPECT_EQ(views.size(), outcome.hits.size() + outcome.misses.size());
    planned += reads_.bytes;
    EXPECT_LE(asked, planned + store_->counters().prefetch_bytes);  // a prefetch may be on its way
    used += reads_.prefetched;
    Bytes resident = 0;
    for (const auto& [id, parts] : held) resident += size(id, parts);
    EXPECT_LE(accountant_.used(device::Account::kExperts), resident);
  }
  const PrefetchCounters& count = store_->prefetch_counters();
  EXPECT_GT(count.useful + count.late, 50u);
  EXPECT_LE(used, count.useful);
  EXPECT_GT(count.wasted + count.dropped, 50u);
  EXPECT_GT(store_->counters().prefetch_bytes, 0u);
  store_.reset();
  EXPECT_EQ(accountant_.used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(InBothViews, Prefetches, ::testing::Values("zstd", "native"));

TEST_F(ResidencyStates, AChunkCanBeReadAlone) {
  open(packed("zstd", 3), 3, 1);
  const ExpertLayout& layout = store_->layout({0, 0});
  for (const PiecePlace& piece : layout.pieces) {
    ASSERT_EQ(piece.chunks.size(), 3u);
    for (const codec::PlaneChunk& chunk : piece.chunks) {
      const ReadRegion::Range range = layout.rest.covering(chunk.place, chunk.bytes);
      ASSERT_LT(range.first, range.end);
      EXPECT_LE(layout.rest.runs[range.first].place, chunk.place);
      const FileRun& last = layout.rest.runs[range.end - 1];
      EXPECT_GE(last.place + last.length, chunk.place + chunk.bytes);
    }
  }
}

}  // namespace
}  // namespace sluice::fetch
