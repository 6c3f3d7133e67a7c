// A store of a small model, and everything that an ExpertStore needs. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/machine/thread_pool.h"
#include "codec/exponents/plane_decoder.h"
#include "device/space.h"
#include "experts/registry.h"
#include "fetch/fetch_options.h"
#include "fetch/memory/expert_store.h"
#include "fetch/weight_files.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::fetch::testing {

using experts::Admission;
using experts::EventOutcome;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using experts::State;

inline const std::string kModel = sluice::testing::kGoldenModels + "/qwen2_moe_b";

inline const std::byte* plane_of(const codec::MatrixRef& view, std::size_t plane) {
  return device::host_space().pointer(view.planes[plane]);
}

inline bool is_packed(const codec::MatrixRef& view) { return view.format == &codec::kFormatPacked; }

inline std::vector<std::byte> bytes_of(const codec::MatrixRef& view) {
  if (is_packed(view)) {
    std::vector<std::byte> words;
    const codec::PlaneDecoder decoder("native", best_isa());
    for (const codec::PlaneChunk& chunk : view.chunks) {
      const codec::TileShape rows =
          codec::tile_rows({view.shape.rows, view.shape.columns}, chunk.first, chunk.count).shape;
      std::vector<std::byte> part(2 * rows.rows * rows.columns);
      decoder.words(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw,
                    {plane_of(view, 1) + chunk.place, chunk.bytes},
                    {plane_of(view, 0) + chunk.first, chunk.count}, rows, part);
      words.insert(words.end(), part.begin(), part.end());
    }
    return words;
  }
  if (view.empty()) return {};
  return {plane_of(view, 0), plane_of(view, 0) + view.format->bytes(view.shape)};
}

// Prepares and begins an event whose reads `scheduler` orders.
inline EventReads begin_event(ExpertStore& store, const EventOutcome& outcome, const experts::Demand& demand,
                              experts::Scheduler& scheduler) {
  const EventReads reads = store.prepare(outcome, demand);
  experts::ReadOrder order;
  experts::order_reads(reads.missing, store.assumed_costs(), scheduler, order);
  store.begin(order);
  return reads;
}

class ExpertStoreTest : public ::testing::Test {
 protected:
  // Options of a reader that adds the bytes of each read to `asked`, which must outlive it.
  static FetchOptions counting_reads(std::atomic<Bytes>& asked) {
    FetchOptions options;
    options.wrap_reader = [&asked](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner),
                                [&asked](const DiskRead& read) { return asked += read.length, 0; });
    };
    return options;
  }

  // Changes one bit of a file; again, and it is as before.
  static void flip_bit(const std::string& file, Bytes offset) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(offset));
    ASSERT_TRUE(stream.put(byte).flush());
  }

  // Its matrices are narrow: in tiles they have another shape, unless they keep their columns.
  std::string packed(const std::string& codec, unsigned chunks = 4, bool keep_columns = false) {
    const std::string path =
        scratch_.path() + "/" + codec + std::to_string(chunks) + (keep_columns ? "k" : "") + ".sluice";
    if (std::filesystem::exists(path)) return path;
    store::PackOptions options;
    options.codec = codec;
    options.chunks = chunks;
    options.keep_columns = keep_columns;
    store::pack(kModel, path, model::pack_plan(*store::open_checkpoint(kModel)), options);
    return path;
  }

  void open(const std::string& path, Bytes capacity_experts, Bytes staging_experts,
            FetchOptions options = {}) {
    options.io = io_;
    checkpoint_ = store::open_checkpoint(path);
    model_ = model::describe_model(*checkpoint_);
    files_ = std::make_unique<WeightFiles>(*checkpoint_, options);
    store_ = std::make_unique<ExpertStore>(*checkpoint_, model_, *files_, pool_, best_isa(), accountant_);
    store_->compute_packed(compute_packed_);
    store_->configure({capacity_experts * store_->facts().largest_resident,
                       staging_experts * store_->staging_needs().least});
  }

  // Runs one event and returns the views' bytes by id.
  std::map<ExpertId, std::vector<std::byte>> run(const EventOutcome& outcome) {
    std::map<ExpertId, std::vector<std::byte>> views;
    std::vector<ExpertId> ids;
    for (const Admission& used : outcome.hits) ids.push_back(used.id);
    for (const Admission& used : outcome.misses) ids.push_back(used.id);
    std::sort(ids.begin(), ids.end());
    reads_ = begin_event(*store_, outcome, {.experts = ids}, *scheduler_);
    while (const auto pin = store_->next()) {
      std::vector<std::byte> all;
      for (const codec::MatrixRef* view : {&pin->view().gate, &pin->view().up, &pin->view().down}) {
        const auto bytes = bytes_of(*view);
        packed_views_ += is_packed(*view);
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(views.emplace(pin->id(), all).second) << "handed out twice";
    }
    return views;
  }

  // The words in the checkpoint's own files.
  std::vector<std::byte> truth(ExpertId id) {
    const auto directory = store::open_checkpoint(kModel);
    std::vector<std::byte> all;
    for (const model::ExpertPieces& pieces : model_.experts) {
      if (pieces.layer != id.layer || pieces.index != id.index) continue;
      for (const store::Piece* piece : {&pieces.gate, &pieces.up, &pieces.down}) {
        const store::StoredPiece stored = directory->locate(*piece);
        std::vector<std::byte> bytes(stored.first().length);
        std::ifstream file(directory->weight_files()[stored.first().file], std::ios::binary);
        file.seekg(static_cast<std::streamoff>(stored.first().offset));
        file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    }
    return all;
  }

  // Compares the parts in memory with those that were decided to stay: all of them, or fewer where reads have
  // failed. The bytes must agree.
  enum class Stays { kAll, kAtMost };
  void expect_stays(const std::map<ExpertId, Parts>& decided, Stays stays) const {
    Bytes resident = 0;
    for (const auto& [id, parts] : decided) {
      const Parts there = store_->parts(id);
      ASSERT_TRUE(stays == Stays::kAll ? there == parts : (there - parts).empty())
          << id.layer << "/" << id.index;
      EXPECT_TRUE(experts::is_legal(there)) << id.layer << "/" << id.index;
      resident += store_->sizes().bytes(id).of(there);
    }
    EXPECT_EQ(resident_bytes(), resident);
    EXPECT_EQ(accountant_.used(device::Account::kExperts), resident);
  }

  State state(ExpertId id) const { return experts::state_of(store_->parts(id)); }  // not for slices
  Bytes resident_bytes() const {                                                   // bytes of all parts
    Bytes sum = 0;
    for (const auto& [id, parts] : all_missing()) sum += size(id, store_->parts(id));
    return sum;
  }
  Bytes size(ExpertId id, Parts parts) const { return store_->sizes().bytes(id).of(parts); }
  // Bytes that reading these parts asks of the disk.
  Bytes disk(ExpertId id, Parts parts) const {
    const ExpertLayout& layout = store_->layout(id);
    return (parts.has(Part::kSm) || parts.has(Part::kMsb) ? layout.base.disk_bytes() : 0) +
           (parts.has(Part::kExp) || parts.has(Part::kLsb) ? layout.rest.disk_bytes() : 0);
  }
  std::map<ExpertId, Parts> all_missing() const {
    std::map<ExpertId, Parts> held;
    for (const model::ExpertPieces& pieces : model_.experts)
      held[{static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)}] = {};
    return held;
  }

  static EventOutcome misses(std::initializer_list<std::uint16_t> ids, Parts keep) {
    EventOutcome outcome;
    for (std::uint16_t id : ids) outcome.misses.push_back({{0, id}, keep});
    return outcome;
  }

  IoMode io_ = IoMode::kDirect;
  bool compute_packed_ = false;
  sluice::testing::ScratchDirectory scratch_;
  ThreadPool pool_{4};
  device::Accountant accountant_{64 * kMiB};
  std::unique_ptr<experts::Scheduler> scheduler_ = experts::make_serial_scheduler();
  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  std::unique_ptr<WeightFiles> files_;
  std::unique_ptr<ExpertStore> store_;
  EventReads reads_;              // reads of the last run()
  std::size_t packed_views_ = 0;  // matrices handed out as `packed` so far
};

}  // namespace sluice::fetch::testing
