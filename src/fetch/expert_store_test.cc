#include "fetch/expert_store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/scratch_directory.h"
#include "experts/registry.h"
#include "model/pack_plan.h"
#include "store/pack.h"

namespace sluice::fetch {
namespace {

using experts::Admission;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using experts::State;

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/tests/golden/models/qwen2_moe_b";

std::vector<std::byte> bytes_of(const MatrixView& view) {
  return {view.data, view.data + view.rows * view.cols * dtype_bytes(view.dtype)};
}

// A store of the small model, and everything that an ExpertStore needs.
class ExpertStoreTest : public ::testing::Test {
 protected:
  std::string packed(const std::string& codec) {
    const std::string path = scratch_.path() + "/" + codec + ".sluice";
    store::PackOptions options;
    options.codec = codec;
    store::pack(kModel, path, model::pack_plan(model::describe_model(*store::open_checkpoint(kModel))), options);
    return path;
  }

  void open(const std::string& path, Bytes capacity_experts, Bytes staging_experts, FetchOptions options = {}) {
    options.io = io_;
    checkpoint_ = store::open_checkpoint(path);
    model_ = model::describe_model(*checkpoint_);
    files_ = std::make_unique<WeightFiles>(*checkpoint_, options);
    store_ = std::make_unique<ExpertStore>(*checkpoint_, model_, *files_, pool_, best_isa(), accountant_);
    store_->configure({capacity_experts * store_->bytes_per_expert(), staging_experts * store_->staging_per_expert()});
  }

  // Runs one event and returns the views' bytes by id.
  std::map<ExpertId, std::vector<std::byte>> run(const EventOutcome& outcome) {
    std::map<ExpertId, std::vector<std::byte>> views;
    store_->begin(outcome, *scheduler_);
    while (const auto pin = store_->next()) {
      std::vector<std::byte> all;
      for (const MatrixView* view : {&pin->view().gate, &pin->view().up, &pin->view().down}) {
        const auto bytes = bytes_of(*view);
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(views.emplace(pin->id(), all).second) << "handed out twice";
    }
    return views;
  }

  // What the checkpoint's own files say.
  std::vector<std::byte> truth(ExpertId id) {
    const auto directory = store::open_checkpoint(kModel);
    std::vector<std::byte> all;
    for (const model::ExpertPieces& pieces : model_.experts) {
      if (pieces.layer != id.layer || pieces.index != id.index) continue;
      for (const store::Piece* piece : {&pieces.gate, &pieces.up, &pieces.down}) {
        const store::StoredPiece stored = directory->locate(*piece);
        std::vector<std::byte> bytes(stored.raw.length);
        std::ifstream file(directory->weight_files()[stored.raw.file], std::ios::binary);
        file.seekg(static_cast<std::streamoff>(stored.raw.offset));
        file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    }
    return all;
  }

  static EventOutcome misses(std::initializer_list<std::uint16_t> ids, Parts keep) {
    EventOutcome outcome;
    for (std::uint16_t id : ids) outcome.misses.push_back({{0, id}, keep});
    return outcome;
  }

  IoMode io_ = IoMode::kDirect;
  sluice::testing::ScratchDirectory scratch_;
  ThreadPool pool_{2};
  device::Accountant accountant_{64 * kMiB};
  std::unique_ptr<experts::Scheduler> scheduler_ = experts::make_serial_scheduler();
  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  std::unique_ptr<WeightFiles> files_;
  std::unique_ptr<ExpertStore> store_;
};

TEST_F(ExpertStoreTest, ViewsAreTheCheckpointsWordsInEveryStateAndWayOfReading) {
  for (const std::string& path : {kModel, packed("none"), packed("zstd"), packed("lz4")}) {
    for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered, IoMode::kMmap}) {
      io_ = io;
      store_.reset();
      open(path, 6, 1);
      const bool split = store_->split();
      const Parts packed_parts = split ? Part::kSm | Part::kExp : Parts(Part::kFull);
      // Streamed, kept in full, kept packed, then hit in both states.
      for (const auto& [id, view] : run(misses({0, 1, 2}, Parts()))) EXPECT_EQ(view, truth(id)) << path;
      for (const auto& [id, view] : run(misses({0, 1}, Part::kFull))) EXPECT_EQ(view, truth(id));
      for (const auto& [id, view] : run(misses({2, 3}, packed_parts))) EXPECT_EQ(view, truth(id));
      EXPECT_EQ(store_->state({0, 0}), State::kF);
      EXPECT_EQ(store_->state({0, 2}), split ? State::kC : State::kF);
      EXPECT_EQ(store_->state({0, 4}), State::kM);
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

TEST_F(ExpertStoreTest, AColdExpertOfAStoreIsOneRead) {
  open(packed("zstd"), 6, 2);
  for (const model::ExpertPieces& pieces : model_.experts)
    EXPECT_EQ(store_->layout({static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)}).runs.size(), 1u);
}

TEST_F(ExpertStoreTest, EvictedExpertsMakeRoomAndSteadyStateMapsNothing) {
  open(packed("zstd"), 2, 2);
  run(misses({0, 1}, Part::kFull));
  const Bytes used = accountant_.used();
  for (std::uint16_t round = 0; round < 20; ++round) {
    EventOutcome outcome = misses({static_cast<std::uint16_t>((round + 2) % 6)}, Part::kFull);
    outcome.evicted.push_back({{0, static_cast<std::uint16_t>(round % 6)}, Part::kFull});
    run(outcome);
    EXPECT_EQ(store_->state({0, static_cast<std::uint16_t>(round % 6)}), State::kM);
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
    EXPECT_EQ(store_->state({0, 3}), State::kM);
  }
}

TEST_F(ExpertStoreTest, AFlippedBitInAnExpertIsFoundBeforeItIsComputedWith) {
  const std::string path = packed("zstd");
  open(path, 6, 2);
  const PieceLayout layout = store_->layout({0, 1});
  const std::string file = files_->path(layout.runs[0].file);
  store_.reset();
  for (const PiecePlace& piece : layout.pieces) {
    for (const Bytes offset : {piece.file_offset, piece.chunks.back().file_offset}) {
      std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
      const auto flip = [&] {
        stream.seekg(static_cast<std::streamoff>(offset));
        const char byte = static_cast<char>(stream.get() ^ 0x10);
        stream.seekp(static_cast<std::streamoff>(offset));
        stream.put(byte).flush();
      };
      flip();
      open(path, 6, 2);
      try {
        run(misses({1}, Part::kFull));
        FAIL() << "no error";
      } catch (const Error& caught) {
        EXPECT_EQ(caught.kind(), ErrorKind::kCorrupt);
        EXPECT_EQ(caught.offset(), offset);
      }
      store_.reset();
      flip();
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
