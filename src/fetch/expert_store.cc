#include "fetch/expert_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace sluice::fetch {
namespace {

using experts::Admission;
using experts::ExpertId;
using experts::Part;
using experts::Parts;
using experts::State;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A completion's tag: which reading, which run of it.
std::uint64_t tag_of(std::size_t reading, std::size_t run) { return reading << 8 | run; }

}  // namespace

// In state F `full` holds the view; in state C `packed` holds the read buffer (sm and exp together).
struct ExpertStore::Expert {
  PieceLayout layout;
  std::uint32_t hidden = 0, width = 0;
  device::HostBuffer full, packed;
  std::uint32_t pins = 0;
};

struct ExpertStore::Reading {
  Admission admission;
  device::HostBuffer buffer;     // reads land here
  device::HostBuffer view;       // decode target when it is not the read buffer; taken when the read starts
  std::size_t runs_left = 0;
};

class ExpertStore::Sizes final : public experts::ExpertSizes {
 public:
  explicit Sizes(const ExpertStore& store) : store_(store) {}
  experts::ExpertBytes bytes(ExpertId id) const override {
    const PieceLayout& layout = store_.layout(id);
    experts::ExpertBytes bytes;
    bytes.full = round_up(layout.view_bytes, kBlockBytes);
    if (layout.needs_decode) {
      // Both parts live in one buffer; what the exponents need on top of sm is theirs.
      for (const PiecePlace& piece : layout.pieces) bytes.sm += piece.split ? piece.elements : piece.raw_bytes();
      bytes.exp = round_up(layout.read_bytes, kBlockBytes) - bytes.sm;
    }
    return bytes;
  }

 private:
  const ExpertStore& store_;
};

ExpertStore::ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
                         ThreadPool& pool, Isa isa, device::Accountant& accountant)
    : files_(files), decoder_(files, pool, isa, checkpoint.codec()), accountant_(accountant) {
  experts_.reserve(model.experts.size());
  for (const model::ExpertPieces& pieces : model.experts) {
    if (pieces.index == 0) layer_begin_.push_back(static_cast<std::uint32_t>(experts_.size()));
    SLUICE_CHECK(pieces.layer + 1 == layer_begin_.size() && experts_.size() == layer_begin_.back() + pieces.index);
    const store::StoredPiece stored[] = {checkpoint.locate(pieces.gate), checkpoint.locate(pieces.up),
                                         checkpoint.locate(pieces.down)};
    Expert expert;
    expert.layout = lay_out(stored);
    SLUICE_CHECK(expert.layout.runs.size() <= 256, "tag_of has eight bits for the run");
    expert.hidden = model.config.hidden;
    expert.width = model.config.moe.width;
    largest_read_ = std::max(largest_read_, round_up(expert.layout.read_bytes, kBlockBytes));
    largest_view_ = std::max(largest_view_, round_up(expert.layout.view_bytes, kBlockBytes));
    any_decode_ |= expert.layout.needs_decode;
    all_split_ &= expert.layout.needs_decode;
    experts_.push_back(std::move(expert));
  }
  sizes_ = std::make_unique<Sizes>(*this);
}

ExpertStore::~ExpertStore() { files_.drain(); }  // buffers belong to reads until these are complete

const experts::ExpertSizes& ExpertStore::sizes() const { return *sizes_; }

Bytes ExpertStore::staging_per_expert() const {
  const Bytes page_cache = files_.uses_page_cache() ? largest_read_ : 0;
  return page_cache + (any_decode_ ? largest_read_ + largest_view_ : largest_read_);
}

Bytes ExpertStore::least_staging() const { return experts_.empty() ? 0 : staging_per_expert(); }

Bytes ExpertStore::bytes_per_expert() const { return largest_view_; }

void ExpertStore::configure(const ExpertStoreOptions& options) {
  SLUICE_CHECK(options.staging >= least_staging(), fmt::format("{} < {}", options.staging, least_staging()));
  // Pages that reads in flight hold in the page cache are ours as well: half of the staging is set aside for them.
  const Bytes buffers = files_.uses_page_cache() && !experts_.empty()
                            ? options.staging - options.staging / staging_per_expert() * largest_read_
                            : options.staging;
  if (buffers < options.staging) accountant_.charge(device::Account::kStaging, options.staging - buffers);
  resident_pool_.emplace(accountant_, device::Account::kExperts, options.capacity);
  staging_pool_.emplace(accountant_, device::Account::kStaging, buffers);
}

ExpertStore::Expert& ExpertStore::expert(ExpertId id) { return experts_[layer_begin_[id.layer] + id.index]; }

const ExpertStore::Expert& ExpertStore::expert(ExpertId id) const {
  return experts_[layer_begin_[id.layer] + id.index];
}

const PieceLayout& ExpertStore::layout(ExpertId id) const { return expert(id).layout; }

Bytes ExpertStore::disk_bytes(ExpertId id) const {
  Bytes bytes = 0;
  for (const FileRun& run : layout(id).runs) bytes += run.length;
  return bytes;
}

State ExpertStore::state(ExpertId id) const {
  const Expert& it = expert(id);
  return it.full ? State::kF : it.packed ? State::kC : State::kM;
}

Bytes ExpertStore::resident_bytes() const { return resident_pool_ ? resident_pool_->in_use() : 0; }

ExpertView ExpertStore::view_of(const Expert& expert, const std::byte* base) const {
  const auto matrix = [&](std::size_t piece, std::size_t rows, std::size_t cols) {
    const PiecePlace& place = expert.layout.pieces[piece];
    SLUICE_CHECK(place.elements == rows * cols);
    return MatrixView{base + place.view_place, place.dtype, rows, cols};
  };
  return {matrix(0, expert.width, expert.hidden), matrix(1, expert.width, expert.hidden),
          matrix(2, expert.hidden, expert.width)};
}

void ExpertStore::begin(const experts::EventOutcome& outcome, experts::Scheduler& scheduler) {
  SLUICE_CHECK(resident_pool_ && ready_.empty() && waiting_.empty() && in_flight_ == 0, "an event is running");
  for (const experts::Eviction& eviction : outcome.evicted) drop(eviction);
  ready_.clear();
  for (const experts::Admission& hit : outcome.hits) ready_.push_back(hit.id);

  std::vector<experts::Task> tasks;
  std::vector<std::uint32_t> miss_of_task;
  for (std::uint32_t miss = 0; miss < outcome.misses.size(); ++miss) {
    const ExpertId id = outcome.misses[miss].id;
    for (std::uint16_t tensor = 0; tensor < layout(id).pieces.size(); ++tensor) {
      tasks.push_back({.expert = id, .tensor = tensor});
      miss_of_task.push_back(miss);
    }
  }
  experts::Schedule schedule;
  scheduler.order(tasks, {}, schedule);
  SLUICE_CHECK(schedule.order.size() == tasks.size());
  // A miss is one read of the whole expert, so an expert starts where its first tensor stands.
  std::vector<bool> queued(outcome.misses.size(), false);
  for (std::uint32_t position : schedule.order) {
    const std::uint32_t miss = miss_of_task[position];
    if (queued[miss]) continue;
    queued[miss] = true;
    waiting_.push_back(outcome.misses[miss]);
  }
  pump();
}

void ExpertStore::drop(const experts::Eviction& eviction) {
  Expert& it = expert(eviction.id);
  SLUICE_CHECK(it.pins == 0, "a pinned expert was evicted");
  if (eviction.parts.has(Part::kFull)) resident_pool_->give(std::move(it.full));
  if (eviction.parts.has_all(Part::kSm | Part::kExp)) resident_pool_->give(std::move(it.packed));
}

void ExpertStore::pump() {
  while (!waiting_.empty() && try_start(waiting_.front())) waiting_.pop_front();
}

bool ExpertStore::try_start(Admission admission) {
  const PieceLayout& layout = expert(admission.id).layout;
  const bool keep_full = admission.parts.has(Part::kFull);
  const bool keep_packed = !admission.parts.empty() && !keep_full;
  SLUICE_CHECK(!keep_packed || admission.parts == (Part::kSm | Part::kExp), "states S and E need parts read alone");

  // Sizes in staging are uniform, so that its buffers are always reused.
  const Bytes staged = (keep_packed || (keep_full && !layout.needs_decode) ? 0 : largest_read_) +
                       (layout.needs_decode && !keep_full ? largest_view_ : 0);
  if (staged > 0 && staging_pool_->in_use() + staged > staging_pool_->limit()) return false;

  auto reading = std::make_unique<Reading>();
  reading->admission = admission;
  if (layout.needs_decode) {
    reading->buffer = keep_packed ? resident_pool_->take(layout.read_bytes) : staging_pool_->take(largest_read_);
    reading->view = keep_full ? resident_pool_->take(layout.view_bytes) : staging_pool_->take(largest_view_);
  } else {
    reading->buffer = keep_full ? resident_pool_->take(layout.read_bytes) : staging_pool_->take(largest_read_);
  }
  reading->runs_left = layout.runs.size();

  const auto free_slot = std::find(readings_.begin(), readings_.end(), nullptr);
  const std::size_t slot = static_cast<std::size_t>(free_slot - readings_.begin());
  if (free_slot == readings_.end()) readings_.emplace_back();
  for (std::size_t run = 0; run < layout.runs.size(); ++run) {
    files_.submit(layout.runs[run], reading->buffer.data(), tag_of(slot, run));
    counters_.demand_bytes += layout.runs[run].length;
  }
  counters_.demand_reads += 1;
  in_flight_ += 1;
  if (layout.runs.empty()) arrived_.push_back(slot);
  readings_[slot] = std::move(reading);
  return true;
}

void ExpertStore::collect(std::size_t min_completions) {
  completions_.clear();
  files_.reader().wait(min_completions, completions_);
  for (const DiskCompletion& completion : completions_) {
    Reading& reading = *readings_[completion.tag >> 8];
    files_.check(expert(reading.admission.id).layout.runs[completion.tag & 255], completion);
    if (--reading.runs_left == 0) arrived_.push_back(completion.tag >> 8);
  }
}

std::optional<ExpertStore::Pin> ExpertStore::next() {
  collect(0);
  pump();
  if (!ready_.empty()) {
    const ExpertId id = ready_.front();
    // A hit in state C needs a staged view; if reads hold all of the staging, they are finished first.
    if (expert(id).full || staging_pool_->in_use() + largest_view_ <= staging_pool_->limit()) {
      ready_.pop_front();
      return expert(id).full ? pin_resident(id) : pin_packed(id);
    }
  }
  if (in_flight_ == 0) {
    SLUICE_CHECK(waiting_.empty() && ready_.empty(), "nothing is in flight, yet something waits");
    return std::nullopt;
  }
  while (arrived_.empty()) {
    const auto start = std::chrono::steady_clock::now();
    collect(1);
    counters_.wait_s += seconds_since(start);
  }
  const std::size_t slot = arrived_.front();
  arrived_.pop_front();
  return finish(slot);
}

ExpertStore::Pin ExpertStore::finish(std::size_t slot) {
  const std::unique_ptr<Reading> reading = std::move(readings_[slot]);
  in_flight_ -= 1;
  const ExpertId id = reading->admission.id;
  Expert& it = expert(id);
  const auto start = std::chrono::steady_clock::now();
  decoder_.decode(it.layout, reading->buffer.data(), reading->view.data());
  counters_.decode_s += seconds_since(start);

  if (it.layout.needs_decode) {
    if (reading->admission.parts.has(Part::kFull)) {
      staging_pool_->give(std::move(reading->buffer));
      it.full = std::move(reading->view);
      return pin_resident(id);
    }
    if (!reading->admission.parts.empty())
      it.packed = std::move(reading->buffer);
    else
      staging_pool_->give(std::move(reading->buffer));
    const ExpertView view = view_of(it, reading->view.data());
    it.pins += 1;
    return Pin(this, id, view, std::move(reading->view));
  }
  if (reading->admission.parts.has(Part::kFull)) {
    it.full = std::move(reading->buffer);
    return pin_resident(id);
  }
  const ExpertView view = view_of(it, reading->buffer.data());
  it.pins += 1;
  return Pin(this, id, view, std::move(reading->buffer));
}

ExpertStore::Pin ExpertStore::pin_resident(ExpertId id) {
  Expert& it = expert(id);
  it.pins += 1;
  return Pin(this, id, view_of(it, it.full.data()), {});
}

ExpertStore::Pin ExpertStore::pin_packed(ExpertId id) {
  Expert& it = expert(id);
  device::HostBuffer view = staging_pool_->take(largest_view_);
  const auto start = std::chrono::steady_clock::now();
  decoder_.decode(it.layout, it.packed.data(), view.data());
  counters_.decode_s += seconds_since(start);
  it.pins += 1;
  const ExpertView matrices = view_of(it, view.data());
  return Pin(this, id, matrices, std::move(view));
}

void ExpertStore::unpin(ExpertId id, device::HostBuffer staged) {
  Expert& it = expert(id);
  SLUICE_CHECK(it.pins > 0);
  it.pins -= 1;
  if (staged) staging_pool_->give(std::move(staged));
}

ExpertStore::Pin::Pin(ExpertStore* store, ExpertId id, ExpertView view, device::HostBuffer staged)
    : store_(store), id_(id), view_(view), staged_(std::move(staged)) {}

ExpertStore::Pin::Pin(Pin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), id_(other.id_), view_(other.view_), staged_(std::move(other.staged_)) {}

ExpertStore::Pin& ExpertStore::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    if (store_ != nullptr) store_->unpin(id_, std::move(staged_));
    store_ = std::exchange(other.store_, nullptr);
    id_ = other.id_;
    view_ = other.view_;
    staged_ = std::move(other.staged_);
  }
  return *this;
}

ExpertStore::Pin::~Pin() {
  if (store_ != nullptr) store_->unpin(id_, std::move(staged_));
}

}  // namespace sluice::fetch
