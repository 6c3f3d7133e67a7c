// Experts in memory: what is resident, what is on its way, and pins that keep views alive while they are computed
// with. Carries out the decisions of experts::Residency; makes none itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "experts/ids.h"
#include "experts/residency.h"
#include "experts/scheduler.h"
#include "fetch/piece_decoder.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"
#include "model/architecture.h"

namespace sluice::fetch {

// One matrix of a view: rows × cols words of `dtype`, row-major, contiguous.
struct MatrixView {
  const std::byte* data = nullptr;
  DType dtype = DType::kBF16;
  std::size_t rows = 0, cols = 0;
};

// The `bf16` view of an expert (DESIGN: what a kernel can compute with).
struct ExpertView {
  MatrixView gate, up, down;     // (width, hidden), (width, hidden), (hidden, width)
};

struct ExpertStoreOptions {
  Bytes capacity = 0;            // bytes of resident experts, in whatever state
  Bytes staging = 0;             // bytes of read buffers and of views of experts that are not kept in full
};

struct ExpertCounters {
  std::uint64_t demand_reads = 0;  // experts read
  Bytes demand_bytes = 0;          // bytes asked of the disk for them (whole blocks)
  double wait_s = 0;               // time next() had nothing ready and waited for the disk
  double decode_s = 0;             // time spent in checksums and decoding
};

// Thread-compatible: one thread begins events and takes pins. All references must outlive this.
class ExpertStore {
 public:
  class Pin;

  ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files, ThreadPool& pool,
              Isa isa, device::Accountant& accountant);
  ~ExpertStore();                // waits for reads in flight

  // Sizes as residency counts them: whole pages, so that logical and charged bytes agree.
  const experts::ExpertSizes& sizes() const;
  bool split() const { return all_split_; }   // every expert is stored as sm and exp, so state C exists
  Bytes least_staging() const;   // one expert of any kind on its way
  Bytes bytes_per_expert() const;          // largest resident size (state F)
  Bytes staging_per_expert() const;        // largest staging one expert on its way takes
  // Once, before the first event. Error(kUsage) if `staging` is below least_staging().
  void configure(const ExpertStoreOptions& options);

  // Starts one event: drops the evicted, starts reading the misses in the order `scheduler` gives. No event may be
  // running. Buffers come from capacity (kept experts) and staging.
  void begin(const experts::EventOutcome& outcome, experts::Scheduler& scheduler);
  // The next expert of the event whose view is ready: hits first, then misses in order of arrival. Waits for the disk
  // if need be. Nothing when every expert of the event has been handed out. Error(kIo), (kCorrupt): the event is over
  // and the experts that failed are not resident; the store must not be used further.
  std::optional<Pin> next();

  experts::State state(experts::ExpertId id) const;   // physical: what is in memory now
  ExpertCounters counters() const { return counters_; }
  Bytes resident_bytes() const;
  Bytes disk_bytes(experts::ExpertId id) const;       // what a miss reads
  const PieceLayout& layout(experts::ExpertId id) const;

 private:
  struct Expert;                 // one expert: layout, buffers, pins
  struct Reading;                // one expert on its way
  class Sizes;
  Expert& expert(experts::ExpertId id);
  const Expert& expert(experts::ExpertId id) const;
  void drop(const experts::Eviction& eviction);
  void pump();                   // starts waiting reads while buffers last
  bool try_start(experts::Admission admission);
  void collect(std::size_t min_completions);
  Pin finish(std::size_t reading);
  Pin pin_resident(experts::ExpertId id);
  Pin pin_packed(experts::ExpertId id);
  void unpin(experts::ExpertId id, device::HostBuffer staged);
  ExpertView view_of(const Expert& expert, const std::byte* base) const;

  WeightFiles& files_;
  PieceDecoder decoder_;
  device::Accountant& accountant_;
  std::vector<Expert> experts_;
  std::vector<std::uint32_t> layer_begin_;          // experts_ index of the first expert of each sparse layer
  std::unique_ptr<Sizes> sizes_;
  Bytes largest_read_ = 0, largest_view_ = 0;
  bool any_decode_ = false, all_split_ = true;
  std::optional<device::BufferPool> resident_pool_, staging_pool_;
  std::deque<experts::ExpertId> ready_;             // hits of the running event
  std::deque<experts::Admission> waiting_;          // misses not started
  std::vector<std::unique_ptr<Reading>> readings_;  // slots; null: free
  std::deque<std::size_t> arrived_;                 // slots whose reads are complete
  std::size_t in_flight_ = 0;                       // readings started and not finished
  std::vector<DiskCompletion> completions_;
  ExpertCounters counters_;
};

// Keeps one view alive. Move-only; the destructor unpins. Must not outlive the store.
class ExpertStore::Pin {
 public:
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();
  experts::ExpertId id() const { return id_; }
  const ExpertView& view() const { return view_; }

 private:
  friend class ExpertStore;
  Pin(ExpertStore* store, experts::ExpertId id, ExpertView view, device::HostBuffer staged);
  ExpertStore* store_ = nullptr;
  experts::ExpertId id_;
  ExpertView view_;
  device::HostBuffer staged_;    // a view that nobody else holds
};

}  // namespace sluice::fetch
