#include "fetch/memory/expert_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "fetch/memory/expert_store_fixture.h"
#include "store/pack/testing.h"

namespace sluice::fetch {
namespace {

using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using experts::State;
using ::testing::HasSubstr;
using testing::kModel;

class ExpertStoreTest : public testing::ExpertStoreTest {};

TEST_F(ExpertStoreTest, ViewsAreTheCheckpointsWordsInEveryStateAndWayOfReading) {
  for (const std::string& path :
       {kModel, packed("none"), packed("zstd"), packed("lz4"), packed("native"), packed("native", 4, true)}) {
    for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered, IoMode::kMmap}) {
      io_ = io;
      store_.reset();
      open(path, 6, 1);
      const bool split = store_->facts().split;
      const Parts packed_parts = split ? Part::kSm | Part::kExp : Parts(Part::kFull);
      // Streamed, kept in full, kept packed, then hit in both states.
      for (const auto& [id, view] : run(misses({0, 1, 2}, Parts()))) EXPECT_EQ(view, truth(id)) << path;
      for (const auto& [id, view] : run(misses({0, 1}, Part::kFull))) EXPECT_EQ(view, truth(id));
      for (const auto& [id, view] : run(misses({2, 3}, packed_parts))) EXPECT_EQ(view, truth(id));
      EXPECT_EQ(state({0, 0}), State::kF);
      EXPECT_EQ(state({0, 2}), split ? State::kC : State::kF);
      EXPECT_EQ(state({0, 4}), State::kM);
      const auto reads = store_->counters().demand_reads;
      EventOutcome hits;
      for (const std::uint16_t id : {0, 1, 2, 3}) {
        const Parts held = id < 2 ? Parts(Part::kFull) : packed_parts;
        hits.hits.push_back({.id = {0, id}, .parts = held, .before = held});
      }
      const auto views = run(hits);
      EXPECT_EQ(views.size(), 4u);
      for (const auto& [id, view] : views) EXPECT_EQ(view, truth(id));
      EXPECT_EQ(store_->counters().demand_reads, reads);
    }
  }
}

TEST_F(ExpertStoreTest, AColdExpertOfAStoreIsOneStretchOfTheFile) {
  open(packed("zstd"), 6, 2);
  for (const model::ExpertPieces& pieces : model_.experts) {
    const ExpertLayout& layout =
        store_->layout({static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)});
    std::vector<FileRun> runs = layout.base.runs;
    runs.insert(runs.end(), layout.rest.runs.begin(), layout.rest.runs.end());
    for (std::size_t i = 1; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].file, runs[0].file);
      EXPECT_EQ(runs[i].offset, runs[i - 1].offset + runs[i - 1].length);
    }
  }
}

TEST_F(ExpertStoreTest, AMissIsOneRequestToTheDevice) {
  for (const bool packed_view : {false, true}) {
    store_.reset();
    compute_packed_ = packed_view;
    open(packed("native"), 6, 2);
    ASSERT_FALSE(store_->layout({0, 0}).rest.runs.empty());
    for (std::uint16_t id = 0; id < 4; ++id) {
      const DiskCounters before = files_->reader().counters();
      EXPECT_EQ(run(misses({id}, Parts())).at({0, id}), truth({0, id}));
      EXPECT_EQ(files_->reader().counters().reads, before.reads + 2);
      EXPECT_EQ(files_->reader().counters().requests, before.requests + 1);
    }
  }
}

TEST_F(ExpertStoreTest, EvictedExpertsMakeRoomAndSteadyStateMapsNothing) {
  open(packed("zstd"), 2, 2);
  run(misses({0, 1}, Part::kFull));
  const Bytes used = accountant_.used();
  for (std::uint16_t round = 0; round < 20; ++round) {
    EventOutcome outcome = misses({static_cast<std::uint16_t>((round + 2) % 6)}, Part::kFull);
    outcome.evicted.push_back({{0, static_cast<std::uint16_t>(round % 6)}, Part::kFull});
    run(outcome);
    EXPECT_EQ(state({0, static_cast<std::uint16_t>(round % 6)}), State::kM);
    EXPECT_EQ(accountant_.used(), used);
  }
}

TEST_F(ExpertStoreTest, AReadThatFailsIsAnErrorThatNamesFileAndPlace) {
  for (const int error : {EIO, ENODATA}) {
    FetchOptions options;
    int reads = 0;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner), [&](const DiskRead&) { return ++reads == 3 ? error : 0; });
    };
    store_.reset();
    open(packed(error == EIO ? "zstd" : "lz4"), 6, 2, options);
    try {
      run(misses({0, 1, 2, 3}, Part::kFull));
      FAIL() << "no error";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.kind(), error == EIO ? ErrorKind::kIo : ErrorKind::kCorrupt);
      EXPECT_NE(std::string(caught.what()).find("experts-"), std::string::npos) << caught.what();
      EXPECT_TRUE(caught.offset().has_value());
    }
    EXPECT_EQ(state({0, 3}), State::kM);
  }
}

TEST_F(ExpertStoreTest, AReaderThatBreaksIsAnErrorOfTheEventAndTheNextOneGoesOn) {
  for (const DiskCall broken : {DiskCall::kSubmit, DiskCall::kWait}) {
    for (const bool for_good : {false, true}) {  // fails until it is made anew
      SCOPED_TRACE(for_good);
      std::atomic<bool> breaking{false}, is_broken{false};
      std::atomic<int> readers{0};
      FetchOptions options;
      options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
        ++readers;
        return make_faulty_reader(
            std::move(inner), [](const DiskRead&) { return 0; },
            [&, first = readers == 1](DiskCall call) {
              if (!first || !breaking) return 0;
              if (call == broken) is_broken = true;
              return is_broken && (for_good || breaking.exchange(false)) ? EIO : 0;
            });
      };
      store_.reset();
      open(packed("zstd"), 6, 3, options);
      breaking = true;
      try {
        run(misses({0, 1, 2, 3}, Part::kFull));
        FAIL() << "no error";
      } catch (const Error& caught) {
        EXPECT_EQ(caught.kind(), ErrorKind::kIo);
      }
      const auto views = run(misses({0, 1, 2, 3}, Part::kFull));
      EXPECT_EQ(views.size(), 4u);
      for (const auto& [id, view] : views) EXPECT_EQ(view, truth(id));
    }
  }
}

// Holds completions back until it is opened, and records the order of reads.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  std::vector<Bytes> offsets;

  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  void wait_until_open() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_open; });
  }
  void wait_for_reads(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return offsets.size() >= count; });
  }

  std::unique_ptr<DiskReader> wrap(std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(
        std::move(inner),
        [this](const DiskRead& read) {
          const std::lock_guard lock(mutex);
          offsets.push_back(read.offset);
          changed.notify_all();
          return 0;
        },
        [this](DiskCall call) {
          if (call == DiskCall::kWait) wait_until_open();
          return 0;
        });
  }
};

TEST_F(ExpertStoreTest, DemandGoesBeforePrefetchAndTakesUpWhatWasPrefetched) {
  Gate gate;
  FetchOptions options;
  options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) { return gate.wrap(std::move(inner)); };
  open(packed("zstd"), 6, 8, options);
  std::vector<experts::PartRequest> requests;
  for (const std::uint16_t e : {0, 1, 2, 3}) requests.push_back({{0, e}, Part::kFull});
  store_->prefetch(requests);
  gate.wait_for_reads(2);  // as many as read-ahead may start
  EventOutcome outcome = misses({3, 4, 5}, Part::kFull);
  std::thread opener([&] {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(100));  // for begin(); if it is late, more is tested
    gate.open();
  });
  for (const auto& [id, view] : run(outcome)) EXPECT_EQ(view, truth(id));
  opener.join();
  EXPECT_EQ(reads_.prefetched, 0u);  // the prefetch came too late for that
  const PrefetchCounters& count = store_->prefetch_counters();
  EXPECT_EQ(count.useful, 0u);
  EXPECT_EQ(count.late, 1u);     // 3
  EXPECT_EQ(count.wasted, 1u);   // 0: two of its reads were under way
  EXPECT_EQ(count.dropped, 2u);  // 1 and 2
  EXPECT_EQ(count.delay_bytes, count.wasted_bytes);
  EXPECT_EQ(store_->counters().prefetch_bytes, count.used_bytes + count.wasted_bytes);
  store_.reset();  // nothing is read any more
  const auto runs_of = [&](std::uint16_t e) {
    std::vector<Bytes> offsets;
    const ExpertLayout layout = lay_out_expert([&] {
      std::vector<store::StoredPiece> stored;
      for (const model::ExpertPieces& pieces : model_.experts)
        if (pieces.layer == 0 && pieces.index == e)
          for (const store::Piece& piece : pieces.all()) stored.push_back(checkpoint_->locate(piece));
      return stored;
    }());
    for (const ReadRegion* region : {&layout.base, &layout.rest})
      for (const FileRun& run : region->runs) offsets.push_back(run.offset);
    return offsets;
  };
  std::size_t demanded_end = 0, demanded = 0;
  for (const std::uint16_t e : {3, 4, 5})
    for (const Bytes offset : runs_of(e)) {
      const auto at = std::find(gate.offsets.begin(), gate.offsets.end(), offset);
      ASSERT_NE(at, gate.offsets.end());
      demanded_end = std::max(demanded_end, static_cast<std::size_t>(at - gate.offsets.begin()) + 1);
      ++demanded;
    }
  EXPECT_EQ(demanded_end, 2 + demanded);  // only the two reads under way went before
}

// Waits until the disk has finished all named prefetches.
void wait_for_prefetch(const ExpertStore& store, Bytes bytes) {
  while (store.counters().prefetch_bytes < bytes) std::this_thread::yield();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(50));  // for checks and decoding; less is tested if late
}

TEST_F(ExpertStoreTest, OnlyPrefetchedMissesThatATokenUsesCount) {
  open(packed("zstd"), 6, 8);
  const experts::PartRequest requests[] = {
      {{0, 0}, Part::kFull}, {{0, 1}, Part::kFull}, {{0, 2}, Part::kFull}};
  store_->prefetch(requests);
  wait_for_prefetch(*store_,
                    store_->disk_bytes({0, 0}) + store_->disk_bytes({0, 1}) + store_->disk_bytes({0, 2}));
  const EventOutcome outcome = misses({0, 1, 2}, Parts());
  const ExpertId ids[] = {{0, 0}, {0, 1}, {0, 2}};
  const std::uint32_t tokens[] = {1, 0, 0};
  const EventReads reads =
      testing::begin_event(*store_, outcome, {.experts = ids, .tokens = tokens}, *scheduler_);
  while (store_->next()) {
  }
  const PrefetchCounters& count = store_->prefetch_counters();
  EXPECT_EQ(count.useful + count.late, 3u);
  EXPECT_LE(reads.prefetched, 1u);
  if (count.useful == 3) {
    EXPECT_EQ(reads.prefetched, 1u);
    EXPECT_EQ(reads.bytes, 0u);
  }
}

TEST_F(ExpertStoreTest, WhatIsNotNamedAgainIsDropped) {
  Gate gate;
  FetchOptions options;
  options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) { return gate.wrap(std::move(inner)); };
  open(packed("zstd"), 6, 8, options);
  const auto name = [&](std::initializer_list<std::uint16_t> ids) {
    std::vector<experts::PartRequest> requests;
    for (const std::uint16_t e : ids) requests.push_back({{0, e}, Part::kFull});
    store_->prefetch(requests);
  };
  name({0, 1, 2});
  gate.wait_for_reads(2);
  name({2, 3});  // 0 had begun, 1 had not
  EXPECT_EQ(store_->prefetch_counters().wasted, 1u);
  EXPECT_EQ(store_->prefetch_counters().dropped, 1u);
  gate.open();
  // Expert 0 itself, though withdrawn, and all others must be right.
  for (const auto& [id, view] : run(misses({0, 1, 2, 3}, Parts()))) EXPECT_EQ(view, truth(id));
  EXPECT_EQ(store_->prefetch_counters().useful + store_->prefetch_counters().late, 2u);
}

TEST_F(ExpertStoreTest, APrefetchThatFailsFailsNobody) {
  std::atomic<bool> broken{true};
  FetchOptions options;
  options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner), [&](const DiskRead&) { return broken ? EIO : 0; });
  };
  open(packed("zstd"), 6, 8, options);
  const experts::PartRequest requests[] = {{{0, 0}, Part::kFull}, {{0, 1}, Part::kFull}};
  store_->prefetch(requests);
  while (store_->counters().prefetch_bytes == 0) std::this_thread::yield();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(50));  // for the failure to come; if it is late, more is tested
  broken = false;
  for (const auto& [id, view] : run(misses({0, 1, 2}, Parts()))) EXPECT_EQ(view, truth(id));
  broken = true;  // a failure of a needed expert fails the event
  EXPECT_THROW(run(misses({3}, Parts())), Error);
}

// Experts that need no read, several at a time; the others only by next(), once they have arrived.
TEST_F(ExpertStoreTest, WhatIsResidentIsHandedOutTogether) {
  open(packed("native"), 6, 2);
  run(misses({0, 1}, Part::kFull));
  EventOutcome outcome = misses({2}, Parts());
  for (const std::uint16_t e : {0, 1}) outcome.hits.push_back({{0, e}, Part::kFull, Part::kFull});
  const std::vector<ExpertId> ids = {{0, 0}, {0, 1}, {0, 2}};
  EXPECT_FALSE(store_->next_resident());  // no event
  testing::begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
  {
    std::vector<ExpertStore::Pin> pins;
    while (auto pin = store_->next_resident()) pins.push_back(std::move(*pin));
    ASSERT_EQ(pins.size(), 2u);
    EXPECT_EQ(pins[0].id(), ids[0]);
    EXPECT_EQ(pins[1].id(), ids[1]);
    for (const ExpertStore::Pin& pin : pins) {
      const auto gate = testing::bytes_of(pin.view().gate);
      const auto expected = truth(pin.id());
      EXPECT_TRUE(std::equal(gate.begin(), gate.end(), expected.begin())) << pin.id().index;
    }
  }
  const auto last = store_->next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id(), ids[2]);
  EXPECT_FALSE(store_->next_resident());
}

// An expert whose prefetch was withdrawn in flight is wanted after all: a caller that waits for its buffers
// learns that the reader broke meanwhile, and does not wait for ever.
TEST_F(ExpertStoreTest, AReaderThatBreaksUnderAWithdrawnPrefetchIsAnErrorOfWhoWantsItAgain) {
  for (const bool before_begin : {true, false}) {
    SCOPED_TRACE(before_begin);
    Gate gate;
    std::atomic<int> readers{0};
    FetchOptions options;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      if (++readers > 1) return inner;  // made anew
      return make_faulty_reader(
          gate.wrap(std::move(inner)), [](const DiskRead&) { return 0; },
          [&](DiskCall call) {
            if (call == DiskCall::kWait) gate.wait_until_open();
            return call == DiskCall::kWait ? EIO : 0;
          });
    };
    store_.reset();
    open(packed("zstd"), 6, 8, options);
    const experts::PartRequest request[] = {{{0, 0}, Part::kFull}};
    store_->prefetch(request);
    gate.wait_for_reads(1);
    store_->prefetch({});
    ASSERT_EQ(store_->prefetch_counters().wasted, 1u);
    if (before_begin) gate.open();
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for begin() to wait; open is open
      gate.open();
    });
    try {
      run(misses({0, 1}, Part::kFull));
      ADD_FAILURE() << "no error";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.kind(), ErrorKind::kIo);
    }
    opener.join();
    store_->abandon_event();
    const auto views = run(misses({0, 1}, Part::kFull));
    EXPECT_EQ(views.size(), 2u);
    for (const auto& [id, view] : views) EXPECT_EQ(view, truth(id));
    EXPECT_EQ(readers, 2);
    store_.reset();
  }
}

TEST_F(ExpertStoreTest, AFlippedBitInAnExpertIsFoundBeforeItIsComputedWith) {
  for (const std::string codec : {"zstd", "native"}) {
    compute_packed_ = codec == "native";
    const std::string path = packed(codec, 4, compute_packed_);
    open(path, 6, 2);
    const ExpertLayout layout = store_->layout({0, 1});
    const std::string file = files_->path(layout.base.runs[0].file);
    store_.reset();
    for (const PiecePlace& piece : layout.pieces) {
      for (const Bytes offset : {piece.planes[0].file_offset, piece.file_offset_of(piece.chunks.back())}) {
        ASSERT_NO_FATAL_FAILURE(flip_bit(file, offset));
        open(path, 6, 2);
        try {
          run(misses({1}, compute_packed_ ? Parts() : Parts(Part::kFull)));
          FAIL() << "no error";
        } catch (const Error& caught) {
          EXPECT_EQ(caught.kind(), ErrorKind::kCorrupt);
          EXPECT_EQ(caught.offset(), offset);
        }
        store_.reset();
        ASSERT_NO_FATAL_FAILURE(flip_bit(file, offset));
      }
    }
  }
}

// A chunk that was written wrong has the right checksum. In the view `packed` nothing decodes it before a
// kernel uses it, and kernels do not know files.
TEST_F(ExpertStoreTest, AnImpossibleChunkIsRefusedWhereItIsReadAndTheErrorSaysWhatToDo) {
  const std::string path = packed("native", 4, true);
  open(path, 6, 2);
  const auto expert = std::ranges::find_if(
      model_.experts, [](const model::ExpertPieces& one) { return one.layer == 0 && one.index == 1; });
  const std::string tensor = expert->up.tensor;
  store_.reset();
  const auto [file, bytes] = store::testing::damage_chunk(path, tensor, store::testing::Damage::kStructure);
  for (const bool packed_views : {true, false}) {
    compute_packed_ = packed_views;
    open(path, 6, 2);
    try {
      run(misses({1}, packed_views ? Parts() : Parts(Part::kFull)));
      ADD_FAILURE() << "no error";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.kind(), ErrorKind::kCorrupt);
      EXPECT_EQ(caught.where(), file);
      EXPECT_EQ(caught.offset(), bytes.offset);
      EXPECT_THAT(caught.found_text(), HasSubstr(fmt::format("(in a chunk of {} bytes)", bytes.length)));
      EXPECT_THAT(caught.what(), HasSubstr("find out where with `sluice verify`"));
    }
    store_.reset();
  }
}

// Damaged codes are found only by the kernel that computes with them; asked then, the store knows the place.
TEST_F(ExpertStoreTest, OfAViewWithImpossibleCodesTheStoreKnowsThePlace) {
  const std::string path = packed("native", 4, true);
  compute_packed_ = true;
  open(path, 6, 2);
  const std::string tensor = model_.experts.front().down.tensor;
  const ExpertId id{static_cast<std::uint16_t>(model_.experts.front().layer),
                    static_cast<std::uint16_t>(model_.experts.front().index)};
  store_.reset();
  const auto [file, bytes] = store::testing::damage_chunk(path, tensor, store::testing::Damage::kCodes);
  open(path, 6, 2);
  const std::vector<ExpertId> ids = {id, {id.layer, static_cast<std::uint16_t>(id.index + 1)}};
  EventOutcome outcome;
  for (const ExpertId one : ids) outcome.misses.push_back({one, Parts()});
  testing::begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
  int damaged = 0;
  while (const auto pin = store_->next()) {
    try {
      store_->check_codes(*pin);
    } catch (const Error& caught) {
      ++damaged;
      EXPECT_EQ(pin->id(), id);
      EXPECT_EQ(caught.kind(), ErrorKind::kCorrupt);
      EXPECT_EQ(caught.where(), file);
      EXPECT_EQ(caught.offset(), bytes.offset);
      EXPECT_THAT(caught.found_text(), HasSubstr(fmt::format("(in a chunk of {} bytes)", bytes.length)));
    }
  }
  EXPECT_EQ(damaged, 1);
}

TEST_F(ExpertStoreTest, CompressedExpertsInTilesAreHandedOutAsTheyAre) {
  constexpr Parts kC = Part::kSm | Part::kExp;
  for (const std::string& path : {packed("native", 4, true), packed("native"), packed("zstd")}) {
    const bool can_be_packed = path == packed("native", 4, true);
    for (const bool packed_views : {true, false}) {
      SCOPED_TRACE(path);
      compute_packed_ = packed_views;
      open(path, 6, 3);
      EXPECT_EQ(store_->facts().can_be_packed, can_be_packed);
      packed_views_ = 0;
      const bool tiled = can_be_packed && packed_views;
      for (const auto& [id, view] : run(misses({0, 1, 2}, kC))) EXPECT_EQ(view, truth(id));
      EXPECT_EQ(packed_views_, tiled ? 9u : 0u);  // even if they had to be read
      packed_views_ = 0;
      run(misses({3}, Part::kFull));
      EXPECT_EQ(packed_views_, 0u);
      EventOutcome hits;
      for (std::uint16_t id : {0, 1, 2}) hits.hits.push_back({{0, id}, kC, kC});
      hits.hits.push_back({{0, 3}, Part::kFull, Part::kFull});
      const auto views = run(hits);
      EXPECT_EQ(packed_views_, tiled ? 9u : 0u);
      EXPECT_EQ(reads_.bytes, 0u);
      ASSERT_EQ(views.size(), 4u);
      for (const auto& [id, view] : views) EXPECT_EQ(view, truth(id)) << id.index;
      EXPECT_EQ(state({0, 1}), experts::State::kC);
      // Promotion makes the words after all.
      EventOutcome promotion;
      promotion.hits.push_back({{0, 1}, Part::kFull, kC});
      packed_views_ = 0;
      EXPECT_EQ(run(promotion).at({0, 1}), truth({0, 1}));
      EXPECT_EQ(packed_views_, 0u);
      EXPECT_EQ(state({0, 1}), experts::State::kF);
    }
  }
}

TEST_F(ExpertStoreTest, PagesOfBufferedReadsAreDropped) {
  io_ = IoMode::kBuffered;
  open(packed("zstd"), 6, 2);
  run(misses({0, 1, 2, 3, 4, 5}, Part::kFull));
  EXPECT_LE(files_->cached_bytes(), 64 * kKiB);
}

}  // namespace
}  // namespace sluice::fetch
