// Experts in slices, at random under a tiny budget with four threads: views equal the store's own bytes,
// exactly the missing slices are read, every byte is accounted for, and failed reads are repeated.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "base/error.h"
#include "fetch/memory/expert_store_fixture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::fetch {
namespace {

using experts::Admission;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

constexpr Parts kBoth = Part::kMsb | Part::kLsb;
using Slices = std::map<Part, std::vector<std::byte>>;

class SlicedStore : public testing::ExpertStoreTest {
 protected:
  std::string sliced(codec::SliceBits bits = {8, 4}) {
    const std::string path = scratch_.path() + "/" + std::to_string(bits.high) + ".sluice";
    if (std::filesystem::exists(path)) return path;
    store::PackOptions options;
    options.slices = bits;
    store::pack(testing::kModel, path, model::pack_plan(*store::open_checkpoint(testing::kModel)), options);
    return path;
  }

  // The slices of all matrices of an expert, as read from the store's files.
  Slices truth(ExpertId id) const {
    Slices slices;
    for (const model::ExpertPieces& pieces : model_.experts) {
      if (pieces.layer != id.layer || pieces.index != id.index) continue;
      for (const store::Piece* piece : {&pieces.gate, &pieces.up, &pieces.down}) {
        const store::StoredPiece stored = checkpoint_->locate(*piece);
        append_file(stored.first(), slices[Part::kMsb]);
        append_file(stored.planes[1].extent, slices[Part::kLsb]);
      }
    }
    return slices;
  }

  std::map<ExpertId, Slices> truths() const {
    std::map<ExpertId, Slices> all;
    for (const auto& [id, parts] : all_missing()) all[id] = truth(id);
    return all;
  }

  // Runs one event; returns the content of its views, by expert.
  std::map<ExpertId, Slices> run(const EventOutcome& outcome) {
    std::map<ExpertId, Slices> views;
    std::vector<ExpertId> ids;
    for (const auto* list : {&outcome.hits, &outcome.misses})
      for (const Admission& used : *list) ids.push_back(used.id);
    std::sort(ids.begin(), ids.end());
    reads_ = testing::begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
    while (const auto pin = store_->next()) {
      Slices& slices = views[pin->id()];
      EXPECT_TRUE(slices.empty()) << "handed out twice";
      for (const codec::MatrixRef* view : {&pin->view().gate, &pin->view().up, &pin->view().down}) {
        EXPECT_TRUE(view->format->slices);
        const codec::SlicedView matrix = codec::slices_of(*view);
        EXPECT_EQ(view->view == codec::SliceView::kLow, matrix.lsb == nullptr);
        append(matrix.msb, matrix.shape.msb_bytes(), slices[Part::kMsb]);
        if (matrix.lsb != nullptr) append(matrix.lsb, matrix.shape.lsb_bytes(), slices[Part::kLsb]);
      }
    }
    return views;
  }

  // Checks the views of an event.
  static void expect_views(const EventOutcome& outcome, const std::map<ExpertId, Slices>& views,
                           const std::map<ExpertId, Slices>& truth) {
    ASSERT_EQ(views.size(), outcome.hits.size() + outcome.misses.size());
    for (const auto* list : {&outcome.hits, &outcome.misses}) {
      for (const Admission& used : *list) {
        Slices expected = truth.at(used.id);
        if (!used.view.has(Part::kLsb)) expected.erase(Part::kLsb);
        ASSERT_EQ(views.at(used.id), expected) << used.id.layer << "/" << used.id.index;
      }
    }
  }

  // One random event as residency would decide it: at most the computed parts of an expert stay. Now and then
  // a prompt has ended before it, and LSBs have left. `held` is kept up to date.
  EventOutcome event(std::map<ExpertId, Parts>& held, Bytes capacity, std::mt19937_64& random) const {
    EventOutcome outcome;
    const auto leave = [&](ExpertId id, Part part) {
      outcome.evicted.push_back({id, part});
      held[id] = held[id] - part;
    };
    std::vector<ExpertId> ids;
    for (const auto& [id, parts] : held) ids.push_back(id);
    if (random() % 4 == 0)
      for (ExpertId id : ids)
        if (held[id].has(Part::kLsb) && random() % 2 == 0) leave(id, Part::kLsb);
    outcome.trimmed = outcome.evicted.size();
    std::shuffle(ids.begin(), ids.end(), random);
    const std::size_t used = random() % (ids.size() + 1);
    for (std::size_t i = used; i < ids.size(); ++i) {
      if (held[ids[i]].empty() || random() % 2 == 0) continue;
      if (held[ids[i]].has(Part::kLsb)) leave(ids[i], Part::kLsb);
      if (random() % 2 == 0) leave(ids[i], Part::kMsb);
    }
    Bytes resident = 0;
    for (std::size_t i = used; i < ids.size(); ++i) resident += size(ids[i], held[ids[i]]);
    ids.resize(used);
    std::sort(ids.begin(), ids.end());
    for (ExpertId id : ids) {
      const Parts before = held[id], view = random() % 2 == 0 ? kBoth : Parts(Part::kMsb);
      const std::vector<Parts> choices = view == kBoth ? std::vector<Parts>{kBoth, Part::kMsb, Parts()}
                                                       : std::vector<Parts>{Part::kMsb, Parts()};
      Parts after = choices[random() % choices.size()];
      if (resident + size(id, after) > capacity) after = {};
      resident += size(id, after);
      for (const Part part : {Part::kLsb, Part::kMsb})
        if ((before - after).has(part)) outcome.evicted.push_back({id, part});
      (before.has_all(view) ? outcome.hits : outcome.misses)
          .push_back({.id = id, .parts = after, .before = before, .asked = view, .view = view});
      held[id] = after;
    }
    return outcome;
  }

 private:
  static void append(const std::byte* data, Bytes bytes, std::vector<std::byte>& to) {
    to.insert(to.end(), data, data + bytes);
  }
  void append_file(const store::Extent& extent, std::vector<std::byte>& to) const {
    std::vector<std::byte> bytes(extent.length);
    std::ifstream file(checkpoint_->weight_files()[extent.file], std::ios::binary);
    file.seekg(static_cast<std::streamoff>(extent.offset));
    ASSERT_TRUE(file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())));
    append(bytes.data(), bytes.size(), to);
  }
};

TEST_F(SlicedStore, RandomEventsReadExactlyTheSlicesThatAreMissing) {
  std::uint64_t seed = 41;
  for (const codec::SliceBits bits : codec::kStoredSliceBits) {
    for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered}) {
      SCOPED_TRACE("seed " + std::to_string(++seed));
      std::mt19937_64 random(seed);
      std::atomic<Bytes> asked{0};
      const FetchOptions options = counting_reads(asked);
      store_.reset();
      io_ = io;
      open(sliced(bits), 3, 1 + random() % 3, options);
      ASSERT_TRUE(store_->facts().sliced);
      const Bytes capacity = 3 * store_->facts().largest_resident;
      const auto truth = truths();
      auto held = all_missing();
      for (int step = 0; step < 150; ++step) {
        const EventOutcome outcome = event(held, capacity, random);
        Bytes expected = 0;
        std::size_t reads = 0, partial = 0;
        for (const auto* list : {&outcome.hits, &outcome.misses}) {
          for (const Admission& used : *list) {
            expected += disk(used.id, used.to_read());
            reads += used.to_read().empty() ? 0 : 1;
            partial += !used.to_read().empty() && !used.before.empty() ? 1 : 0;
          }
        }
        asked = 0;
        ASSERT_NO_FATAL_FAILURE(expect_views(outcome, run(outcome), truth));
        EXPECT_EQ(asked, expected) << "at the file";
        EXPECT_EQ(reads_.bytes, expected);
        EXPECT_EQ(reads_.experts, reads);
        EXPECT_EQ(reads_.partial, partial);
        ASSERT_NO_FATAL_FAILURE(expect_stays(held, Stays::kAll));
      }
      store_.reset();
      EXPECT_EQ(accountant_.used(), 0u);
    }
  }
}

// Read-ahead may fetch less than the view needs, more, or another expert.
TEST_F(SlicedStore, ReadAheadChangesNoView) {
  std::uint64_t seed = 61;
  PrefetchCounters sum;
  for (const std::uint64_t staging : {2, 3, 8}) {
    SCOPED_TRACE("seed " + std::to_string(++seed));
    std::mt19937_64 random(seed);
    std::atomic<Bytes> asked{0};
    const FetchOptions options = counting_reads(asked);
    store_.reset();
    open(sliced(), 3, staging, options);
    const Bytes capacity = 3 * store_->facts().largest_resident;
    const auto truth = truths();
    auto held = all_missing();
    Bytes demanded = 0;
    for (int step = 0; step < 300; ++step) {
      const EventOutcome outcome = event(held, capacity, random);
      std::vector<experts::PartRequest> requests;
      for (const auto* list : {&outcome.misses, &outcome.hits})
        for (const Admission& used : *list)
          if (random() % 4 != 0) requests.push_back({used.id, random() % 2 == 0 ? kBoth : Parts(Part::kMsb)});
      std::shuffle(requests.begin(), requests.end(), random);
      const Bytes before = store_->counters().prefetch_bytes;
      store_->prefetch(requests);
      if (random() % 2 == 0)  // some read-ahead has arrived when the event begins
        for (int i = 0; i < 1000 && store_->counters().prefetch_bytes == before; ++i)
          std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ASSERT_NO_FATAL_FAILURE(expect_views(outcome, run(outcome), truth));
      demanded += reads_.bytes;
      for (const auto& [id, parts] : held) {
        ASSERT_TRUE((store_->parts(id) - parts).empty()) << id.layer << "/" << id.index;
        ASSERT_TRUE(experts::is_legal(store_->parts(id)));
      }
      ASSERT_LE(resident_bytes(), capacity);
    }
    store_->abandon_event();
    EXPECT_EQ(asked, demanded + store_->counters().prefetch_bytes);
    EXPECT_EQ(accountant_.used(device::Account::kExperts), resident_bytes());
    const PrefetchCounters& count = store_->prefetch_counters();
    sum.useful += count.useful;
    sum.late += count.late;
    sum.wasted += count.wasted + count.dropped;
    EXPECT_LE(count.used_bytes + count.wasted_bytes, store_->counters().prefetch_bytes);
    store_.reset();
    EXPECT_EQ(accountant_.used(), 0u);
  }
  EXPECT_GT(sum.useful, 20u);
  EXPECT_GT(sum.useful + sum.late, 50u);
  EXPECT_GT(sum.wasted, 20u);
}

// An MSB slice has been read ahead, and both slices are needed: it is kept if it has arrived and is to stay.
TEST_F(SlicedStore, ADecisionThatWantsMoreUsesWhatIsThere) {
  const ExpertId id{0, 1};
  for (const Parts after : {kBoth, Parts()}) {
    bool used = false;
    for (int tries = 0; tries < 200 && !used; ++tries) {  // until it arrives before the event begins
      store_.reset();
      open(sliced(), 3, 2);
      const auto truth = truths();
      const experts::PartRequest request{id, Part::kMsb};
      store_->prefetch({&request, 1});
      std::this_thread::sleep_for(std::chrono::milliseconds(tries));
      EventOutcome outcome;
      outcome.misses.push_back({.id = id, .parts = after, .asked = kBoth, .view = kBoth});
      ASSERT_NO_FATAL_FAILURE(expect_views(outcome, run(outcome), truth));
      const PrefetchCounters& count = store_->prefetch_counters();
      EXPECT_EQ(count.useful + count.wasted + count.dropped, 1u);
      EXPECT_EQ(store_->parts(id), after);
      EXPECT_EQ(reads_.bytes, disk(id, count.useful > 0 ? Parts(Part::kLsb) : kBoth));
      used = count.useful > 0;
      if (after.empty()) break;
    }
    EXPECT_EQ(used, !after.empty());
  }
}

TEST_F(SlicedStore, AFailedReadFailsItsEventOnlyAndTheNextOneRepairsIt) {
  const std::uint64_t seed = 1234;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::atomic<int> until_fault{-1}, kind{EIO};
  FetchOptions options;
  options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner),
                              [&](const DiskRead&) { return until_fault-- == 0 ? kind.load() : 0; });
  };
  open(sliced(), 3, 2, options);
  const Bytes capacity = 3 * store_->facts().largest_resident;
  const auto truth = truths();
  auto held = all_missing();
  int failures = 0;
  for (int step = 0; step < 300; ++step) {
    const EventOutcome outcome = event(held, capacity, random);
    until_fault = random() % 2 == 0 ? static_cast<int>(random() % 8) : -1;
    kind = random() % 2 == 0 ? EIO : ENODATA;  // ENODATA: the file has ended
    try {
      ASSERT_NO_FATAL_FAILURE(expect_views(outcome, run(outcome), truth));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind == EIO ? ErrorKind::kIo : ErrorKind::kCorrupt);
      EXPECT_NE(error.where().find("experts-"), std::string::npos) << error.what();
      EXPECT_TRUE(error.offset().has_value());
      ++failures;
    }
    ASSERT_NO_FATAL_FAILURE(expect_stays(held, Stays::kAtMost));
  }
  EXPECT_GT(failures, 20);
}

TEST_F(SlicedStore, AFlippedBitIsFoundInTheSliceThatHasItAndNowhereElse) {
  const std::string path = sliced();
  open(path, 6, 2);
  const ExpertLayout layout = store_->layout({0, 1});
  const std::string file = files_->path(layout.base.runs[0].file);
  const auto truth = truths();
  store_.reset();
  const auto miss = [](Parts view) {
    EventOutcome outcome;
    outcome.misses.push_back({.id = {0, 1}, .parts = view, .asked = view, .view = view});
    return outcome;
  };
  for (const PiecePlace& piece : layout.pieces) {
    for (const bool of_lsb : {false, true}) {
      const Bytes offset = of_lsb ? piece.chunks_offset : piece.planes[0].file_offset;
      ASSERT_NO_FATAL_FAILURE(flip_bit(file, offset));
      open(path, 6, 2);
      if (of_lsb) {  // the slice is not needed
        const EventOutcome low = miss(Part::kMsb);
        ASSERT_NO_FATAL_FAILURE(expect_views(low, run(low), truth));
      }
      try {
        run(miss(kBoth));
        FAIL() << "no error";
      } catch (const Error& caught) {
        EXPECT_EQ(caught.kind(), ErrorKind::kCorrupt);
        EXPECT_EQ(caught.where(), file);
        EXPECT_EQ(caught.offset(), offset);
      }
      EXPECT_EQ(store_->parts({0, 1}), of_lsb ? Parts(Part::kMsb) : Parts());
      ASSERT_NO_FATAL_FAILURE(flip_bit(file, offset));
      const EventOutcome again = miss(kBoth);
      ASSERT_NO_FATAL_FAILURE(expect_views(again, run(again), truth));
      store_.reset();
    }
  }
}

TEST_F(SlicedStore, AnExpertIsOneStretchOfTheFileAndItsSlicesAreRegions) {
  open(sliced({6, 3}), 6, 2);
  for (const auto& [id, parts] : all_missing()) {
    const ExpertLayout& layout = store_->layout(id);
    EXPECT_EQ(layout.rules, &experts::part_rules(experts::Family::kSliced));
    std::vector<FileRun> runs = layout.base.runs;
    runs.insert(runs.end(), layout.rest.runs.begin(), layout.rest.runs.end());
    for (std::size_t i = 1; i < runs.size(); ++i)
      EXPECT_EQ(runs[i].offset, runs[i - 1].offset + runs[i - 1].length);
    EXPECT_EQ(store_->disk_bytes(id), disk(id, kBoth));
    EXPECT_EQ(size(id, kBoth), layout.base.bytes + layout.rest.bytes);
  }
}

}  // namespace
}  // namespace sluice::fetch
