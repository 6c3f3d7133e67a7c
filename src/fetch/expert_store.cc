#include "fetch/expert_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "fetch/expert_in_memory.h"
#include "fetch/extract_planes.h"

namespace sluice::fetch {

using device::Account;
using experts::Admission;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

class ExpertStore::Sizes final : public experts::ExpertSizes {
 public:
  explicit Sizes(const ExpertStore& store) : store_(store) {}
  experts::ExpertBytes bytes(ExpertId id) const override {
    const ExpertLayout& layout = store_.layout(id);
    experts::ExpertBytes bytes;
    bytes.full = layout.view_bytes;
    if (layout.sliced) {
      bytes.msb = layout.base.bytes;
      bytes.lsb = layout.rest.bytes;
    }
    if (layout.split) {
      bytes.sm = layout.base.bytes;
      bytes.exp = layout.rest.bytes;
    }
    return bytes;
  }

 private:
  const ExpertStore& store_;
};

ExpertStore::ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
                         ThreadPool& pool, Isa isa, device::Accountant& accountant)
    : files_(files), accountant_(accountant), executor_(files, pool, isa, checkpoint.codec()) {
  experts_.reserve(model.experts.size());
  const auto add_format = [this](const codec::MatrixFormat* format) {
    if (std::ranges::find(formats_, format) == formats_.end()) formats_.push_back(format);
  };
  for (const model::ExpertPieces& pieces : model.experts) {
    if (pieces.index == 0) layer_begin_.push_back(static_cast<std::uint32_t>(experts_.size()));
    SLUICE_CHECK(pieces.layer + 1 == layer_begin_.size() &&
                 experts_.size() == layer_begin_.back() + pieces.index);
    std::vector<store::StoredPiece> stored;
    for (const store::Piece& piece : pieces.all()) stored.push_back(checkpoint.locate(piece));
    Expert& expert = experts_.emplace_back();
    expert.id = {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)};
    expert.layout = lay_out_expert(stored);
    expert.hidden = model.config.hidden;
    expert.width = model.config.moe.width;
    const ExpertLayout& layout = expert.layout;
    const Bytes read = layout.base.bytes + layout.rest.bytes;
    largest_read_ = std::max(largest_read_, read);
    largest_view_ = std::max(largest_view_, layout.sliced ? read : layout.view_bytes);
    sliced_ |= layout.sliced;
    SLUICE_CHECK(sliced_ == layout.sliced, "experts of two families");
    largest_staging_ = std::max(largest_staging_, layout.split ? read + layout.view_bytes : read);
    all_split_ &= std::ranges::all_of(layout.pieces, &PiecePlace::coded);
    can_be_packed_ &= std::ranges::all_of(layout.pieces, &PiecePlace::own_columns);
    for (const PiecePlace& piece : layout.pieces) {
      add_format(piece.view_format());
      if (piece.own_columns) add_format(piece.format);
    }
  }
  active_.assign(experts_.size(), false);
  sizes_ = std::make_unique<Sizes>(*this);
  // Assumed until measured: a disk of 1.5 GB/s, 1 GB/s of exponents decoded per thread, 10 GB/s of weights
  // computed with.
  if (!experts_.empty() && !experts_[0].layout.pieces.empty()) {
    const ExpertLayout& layout = experts_[0].layout;
    const PiecePlace& piece = layout.pieces[0];
    costs_.fetch.chunks = static_cast<unsigned>(piece.chunks.size());
    costs_.fetch.workers = pool.threads();
    costs_.fetch.u = static_cast<double>(piece.planes[0].bytes) / 1.5e9;
    if (!piece.chunks.empty()) {
      costs_.fetch.v = static_cast<double>(piece.chunks[0].bytes) / 1.5e9;
      costs_.fetch.c = static_cast<double>(piece.chunks[0].count) / 1e9;
    }
    costs_.run = static_cast<double>(sliced_ ? largest_view_ : layout.view_bytes) / 10e9;
    costs_.run_per_token = costs_.run / 8;
  }
}

ExpertStore::~ExpertStore() {
  abandon_event();
  if (page_cache_ > 0) accountant_.release(Account::kStaging, page_cache_);
}

const experts::ExpertSizes& ExpertStore::sizes() const { return *sizes_; }

Bytes ExpertStore::staging_per_expert() const {
  return (compute_packed_ ? largest_read_ : largest_staging_) +
         (files_.uses_page_cache() ? largest_read_ : 0);
}

// Staging for an expert that becomes words: any expert may have to reach state F.
Bytes ExpertStore::least_staging() const {
  return experts_.empty() ? 0 : largest_staging_ + (files_.uses_page_cache() ? largest_read_ : 0);
}

Bytes ExpertStore::bytes_per_expert() const { return largest_view_; }

void ExpertStore::configure(const ExpertStoreOptions& options) {
  SLUICE_CHECK(options.staging >= least_staging(), fmt::format("{} < {}", options.staging, least_staging()));
  // Reads in flight also hold pages of ours in the page cache: a part of the staging is set aside for them.
  if (files_.uses_page_cache() && !experts_.empty())
    page_cache_ = options.staging / staging_per_expert() * largest_read_;
  if (page_cache_ > 0) accountant_.charge(Account::kStaging, page_cache_);
  capacity_ = options.capacity;
  synchronous_ = options.synchronous;
  pool_.emplace(accountant_, Account::kStaging, options.capacity + options.staging - page_cache_);
}

ExpertStore::Expert& ExpertStore::expert(ExpertId id) { return experts_[layer_begin_[id.layer] + id.index]; }

const ExpertStore::Expert& ExpertStore::expert(ExpertId id) const {
  return experts_[layer_begin_[id.layer] + id.index];
}

const ExpertLayout& ExpertStore::layout(ExpertId id) const { return expert(id).layout; }

Bytes ExpertStore::disk_bytes(ExpertId id) const {
  return layout(id).base.disk_bytes() + layout(id).rest.disk_bytes();
}

Parts ExpertStore::parts(ExpertId id) const { return expert(id).held; }

Bytes ExpertStore::resident_bytes() const {
  Bytes sum = 0;
  for (const Expert& it : experts_) sum += sizes_->bytes(it.id).of(it.held);
  return sum;
}

ExpertCounters ExpertStore::counters() const {
  ExpertCounters counters = counters_;
  const FetchCounters fetch = executor_.counters();
  counters.wait_s = fetch.wait_s;
  counters.decode_s = fetch.decode_s;
  counters.prefetch_bytes = fetch.prefetch_bytes;
  counters.demand_s = fetch.demand_s;
  counters.demand_read = fetch.demand_bytes;
  return counters;
}

EventReads ExpertStore::begin(const experts::EventOutcome& outcome, const experts::Demand& demand,
                              experts::Scheduler& scheduler) {
  SLUICE_CHECK(pool_ && ready_.empty() && waiting_.empty() && to_hand_out_ == 0 && pins_ == 0,
               "an event is running");
  const auto index = [&](ExpertId id) { return layer_begin_[id.layer] + id.index; };
  ahead_.clear();
  next_ahead_ = 0;
  for (ExpertId id : demand.experts) active_[index(id)] = true;
  withdraw_unless(active_);
  while (const FetchJob* const withdrawn = executor_.poll()) discard(expert(withdrawn->request.id));
  // Parts that left when a prompt ended are gone when this event asks for them again.
  std::size_t left = 0;
  for (const experts::Eviction& eviction : outcome.evicted)
    if (left++ < outcome.trimmed || !active_[index(eviction.id)]) {
      Expert& it = expert(eviction.id);
      it.target = (it.job ? it.target : it.held) - eviction.parts;
      change_settled(it);
      if (!it.job) {
        drop(it, eviction.parts);
      } else {  // a prefetch builds on it: it goes when the prefetch is done
        const auto evicted = [&](Part part) { return eviction.parts.has(part); };
        if (evicted(Part::kSm) || evicted(Part::kMsb)) it.base.charge_to(Account::kStaging);
        if (evicted(Part::kExp) || evicted(Part::kLsb)) it.rest.charge_to(Account::kStaging);
      }
    }

  for (ExpertId id : outcome.reduced) {
    Expert& it = expert(id);
    if (it.job || it.held != Parts(Part::kFull)) continue;  // an earlier error has left it out
    it.target = Part::kSm;
    change_settled(it);
    settle(it);
  }

  EventReads reads;
  tasks_.clear();
  const auto use = [&](const Admission& admission, bool miss) {
    Expert& it = expert(admission.id);
    const bool counted = miss && it.tokens > 0;
    ++to_hand_out_;
    if (it.job && it.withdrawn) {
      executor_.reclaim(*it.job);
      discard(it);
    }
    if (it.job && sliced_ && !(it.held | made_by(it)).has_all(admission.view)) take_back(it, admission.parts);
    it.in_event = true;
    it.target = admission.parts;
    it.view = admission.view;
    SLUICE_CHECK(sliced_ == it.view.has(Part::kMsb), "slices have a view, and others none");
    if (it.job) {
      if (attach(it, counted, reads)) return;
      executor_.reclaim(*it.job);  // its prefetch failed
      it.target = it.held;
      discard(it);
      it.target = admission.parts;
    }
    it.packed = sliced_ || (compute_packed_ && !it.target.has(Part::kFull));
    const Parts needed = sliced_ ? it.view : kPacked;
    if (it.held.has(Part::kFull) || (it.packed && it.held.has_all(needed))) {
      ready_.push_back(&it);
      return;
    }
    it.job = make_job(it);
    if (const Bytes bytes = reads_of(it); bytes > 0) {
      reads.experts += 1;
      reads.partial += counted && !it.held.empty() ? 1 : 0;
      reads.bytes += bytes;
    }
    const double run = costs_.run + costs_.run_per_token * it.tokens;
    for (std::uint16_t tensor = 0; tensor < it.layout.pieces.size(); ++tensor)
      tasks_.push_back({it.id, tensor, sliced_ ? experts::State::kM : experts::state_of(it.held), run});
  };
  for (std::size_t i = 0; i < demand.experts.size(); ++i) {
    active_[index(demand.experts[i])] = false;
    expert(demand.experts[i]).tokens = demand.tokens.empty() ? 1 : demand.tokens[i];
  }
  for (const Admission& hit : outcome.hits) use(hit, false);
  for (const Admission& miss : outcome.misses) use(miss, true);
  counters_.demand_reads += reads.experts;
  counters_.demand_bytes += reads.bytes;
  if (tasks_.empty()) return reads;

  const auto start = std::chrono::steady_clock::now();
  scheduler.order(tasks_, costs_.fetch, schedule_);
  counters_.plan_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  counters_.plans += 1;
  SLUICE_CHECK(schedule_.order.size() == tasks_.size() && schedule_.block_end.back() == tasks_.size());
  // Experts start in the order of their first appearance.
  for (const std::uint32_t position : schedule_.order) {
    Expert& it = expert(tasks_[position].expert);
    if (std::find(waiting_.begin(), waiting_.end(), &it) == waiting_.end()) waiting_.push_back(&it);
  }
  pump();
  return reads;
}

Bytes ExpertStore::reads_of(const Expert& it) const {
  return (it.job->request.read_base ? it.layout.base.disk_bytes() : 0) +
         (it.job->request.read_rest ? it.layout.rest.disk_bytes() : 0);
}

Bytes ExpertStore::buffers_of(const Expert& it) const {
  if (it.layout.whole()) return it.layout.view_bytes;
  return (it.packed ? 0 : it.layout.view_bytes) + (it.job->request.read_base ? it.layout.base.bytes : 0) +
         (it.job->request.read_rest ? it.layout.rest.bytes : 0);
}

bool ExpertStore::fits(const Expert& it) const {
  const Bytes reads = reads_of(it);
  const experts::ExpertBytes bytes = sizes_->bytes(it.id);
  return settled_ - bytes.of(it.settled) + bytes.of(it.target) <= capacity_ &&
         pool_->in_use() + buffers_of(it) <= pool_->limit() &&
         (page_cache_ == 0 || reads == 0 || reading_ + reads <= page_cache_);
}

void ExpertStore::change_settled(Expert& it) {
  const experts::ExpertBytes bytes = sizes_->bytes(it.id);
  settled_ = settled_ - bytes.of(it.settled) + bytes.of(it.target);
  it.settled = it.target;
}

void ExpertStore::take_buffers(Expert& it) {
  change_settled(it);
  FetchRequest& request = it.job->request;
  if (!it.packed) it.full = pool_->take(it.layout.view_bytes);
  request.view = it.full.data();
  if (!it.layout.whole()) {
    if (request.read_base) it.base = pool_->take(it.layout.base.bytes);
    if (request.read_rest) it.rest = pool_->take(it.layout.rest.bytes);
    request.base = it.base.data();
    request.rest = it.rest.data();
  } else {
    request.base = request.view;
  }
  reading_ += reads_of(it);
}

void ExpertStore::pump() {
  if (waiting_.empty()) return start_ahead();
  if (synchronous_ && (!running_.empty() || pins_ > 0)) return;
  std::size_t started = 0;
  const std::size_t most = synchronous_ ? 1 : waiting_.size();
  while (started < most && fits(*waiting_[started])) take_buffers(*waiting_[started++]);
  if (started == 0) {
    if (!running_.empty() || !ready_.empty() || pins_ > 0) return;  // these will give back buffers
    const auto other =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Expert* it) { return fits(*it); });
    SLUICE_CHECK(other != waiting_.end(), "no expert fits, though none is under way");
    std::rotate(waiting_.begin(), other, other + 1);
    take_buffers(*waiting_[started++]);
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(started);
  std::vector<FetchTask>& tasks = tasks_to_start_;
  std::vector<std::uint32_t>& block_end = block_end_;
  tasks.clear();
  block_end.clear();
  std::uint32_t position = 0;
  for (const std::uint32_t block : schedule_.block_end) {
    for (; position < block; ++position) {
      const experts::Task& task = tasks_[schedule_.order[position]];
      Expert& it = expert(task.expert);
      if (std::find(waiting_.begin(), end, &it) != end) tasks.push_back({it.job.get(), task.tensor});
    }
    if (!tasks.empty() && (block_end.empty() || tasks.size() > block_end.back()))
      block_end.push_back(static_cast<std::uint32_t>(tasks.size()));
  }
  running_.insert(running_.end(), waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  executor_.start(tasks, block_end);
  start_ahead();
}

std::optional<ExpertStore::Pin> ExpertStore::next() {
  while (to_hand_out_ > 0) {
    pump();
    if (std::optional<Pin> resident = next_resident()) return resident;
    try {
      const FetchJob* const job = executor_.next();
      SLUICE_CHECK(job != nullptr, "nothing is under way, yet something waits");
      Expert& it = expert(job->request.id);
      if (it.in_event) return pin(it);
      discard(it);
    } catch (...) {
      abandon_event();
      throw;
    }
  }
  return std::nullopt;
}

std::optional<ExpertStore::Pin> ExpertStore::next_resident() {
  if (ready_.empty()) return std::nullopt;
  Expert& it = *ready_.front();
  ready_.erase(ready_.begin());
  return pin(it);
}

void ExpertStore::check_codes(const Pin& pin) const {
  if (pin.view().up.format != &codec::kFormatPacked) return;
  for (const PiecePlace& piece : pin.expert_->layout.pieces)
    executor_.decoder().check_codes(piece, pin.expert_->rest.data());
}

std::unique_ptr<FetchJob> ExpertStore::make_job(const Expert& it) {
  if (spare_jobs_.empty()) spare_jobs_.push_back(std::make_unique<FetchJob>());
  std::unique_ptr<FetchJob> job = std::move(spare_jobs_.back());
  spare_jobs_.pop_back();
  job->clear();
  job->request.id = it.id;
  job->request.layout = &it.layout;
  if (sliced_) {
    job->request.read_base = !it.held.has(Part::kMsb);
    job->request.read_rest = it.view.has(Part::kLsb) && !it.held.has(Part::kLsb);
  } else {
    job->request.read_base = !it.held.has(Part::kSm);
    job->request.read_rest = it.layout.split && !it.held.has(Part::kExp);
  }
  return job;
}

Parts ExpertStore::made_by(const Expert& it) const {
  if (sliced_)
    return (it.job->request.read_base ? Parts(Part::kMsb) : Parts()) |
           (it.job->request.read_rest ? Parts(Part::kLsb) : Parts());
  if (it.layout.whole()) return Part::kFull;
  return it.packed ? kPacked : kPacked | Part::kFull;
}

void ExpertStore::finish_job(Expert& it) {
  reading_ -= reads_of(it);
  std::erase(running_, &it);
  it.held = it.held | made_by(it);  // for a moment the expert has all these parts
  spare_jobs_.push_back(std::move(it.job));
  it.withdrawn = false;
}

ExpertStore::Pin ExpertStore::pin(Expert& it) {
  ++pins_;
  --to_hand_out_;
  return Pin(this, &it, it.id, view_of(it));
}

void ExpertStore::unpin(Expert& it) {
  SLUICE_CHECK(pins_ > 0);
  --pins_;
  it.in_event = false;
  if (it.job)
    finish_job(it);
  else
    change_settled(it);
  settle(it);
}

void ExpertStore::settle(Expert& it) {
  // State S from F alone (an expert of the event, or a reduced one): takes the planes out of the words into a
  // free buffer if there is one, so that nothing is mapped or unmapped; otherwise in place if they fit, and
  // the rest of the buffer goes.
  if (it.target == Parts(Part::kSm) && it.held == Parts(Part::kFull)) {
    if (pool_->has_free(it.layout.base.bytes)) {
      it.base = pool_->take(it.layout.base.bytes);
      extract_planes(it.layout, it.full.data(), it.base.data(), extract_scratch_);
      pool_->give(std::move(it.full));
    } else if (planes_fit_in_place(it.layout)) {
      extract_planes(it.layout, it.full.data(), it.full.data(), extract_scratch_);
      it.base = std::move(it.full);
      pool_->shrink(it.base, it.layout.base.bytes);
    } else {  // narrow matrices in tiles: a few KiB
      const std::vector<std::byte> view(it.full.data(), it.full.data() + it.layout.view_bytes);
      pool_->give(std::move(it.full));
      it.base = pool_->take(it.layout.base.bytes);
      extract_planes(it.layout, view.data(), it.base.data(), extract_scratch_);
    }
    it.held = Part::kSm;
  }
  const Parts keep = it.target;
  SLUICE_CHECK(it.held.has_all(keep),
               fmt::format("expert {}/{} is to keep what it never had", it.id.layer, it.id.index));
  drop(it, it.held - keep);
  for (device::HostBuffer* buffer : {&it.full, &it.base, &it.rest}) buffer->charge_to(Account::kExperts);
}

void ExpertStore::drop(Expert& it, Parts parts) {
  if (parts.has(Part::kFull)) pool_->give(std::move(it.full));
  if (parts.has(Part::kSm) || parts.has(Part::kMsb)) pool_->give(std::move(it.base));
  if (parts.has(Part::kExp) || parts.has(Part::kLsb)) pool_->give(std::move(it.rest));
  it.held = it.held - parts;
}

void ExpertStore::abandon_event() noexcept {
  executor_.cancel();
  const auto reset = [&](Expert& it) {
    if (it.job && !it.in_event && !it.withdrawn) count_in_vain({.begun = it.job->begun()});
    // Buffers that were being filled go; of the parts held before, those that were to stay do stay.
    for (const auto& [part, buffer] :
         {std::pair{Parts(Part::kFull), &it.full}, std::pair{Parts(it.layout.base_part()), &it.base},
          std::pair{Parts(it.layout.rest_part()), &it.rest}}) {
      if (it.held.has_all(part) && it.target.has_all(part)) continue;
      pool_->give(std::move(*buffer));
      it.held = it.held - part;
    }
    it.job.reset();
    it.in_event = it.withdrawn = false;
    it.target = it.held;
    change_settled(it);
  };
  for (Expert& it : experts_)
    if (it.job || it.in_event) reset(it);
  running_.clear();
  waiting_.clear();
  ready_.clear();
  to_hand_out_ = 0;
  reading_ = 0;
}

ExpertView ExpertStore::view_of(const Expert& it) const {
  ExpertMemory memory{it.full.data(), it.base.data(), it.rest.data()};
  if (sliced_ && !it.view.has(Part::kLsb)) memory.rest = nullptr;
  if (it.packed && (it.job || !it.held.has(Part::kFull))) memory.view = nullptr;
  return expert_view(it.layout, it.width, it.hidden, memory);
}

ExpertStore::Pin::Pin(Pin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      expert_(other.expert_),
      id_(other.id_),
      view_(other.view_) {}

ExpertStore::Pin& ExpertStore::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    if (store_ != nullptr) store_->unpin(*expert_);
    store_ = std::exchange(other.store_, nullptr);
    expert_ = other.expert_;
    id_ = other.id_;
    view_ = other.view_;
  }
  return *this;
}

ExpertStore::Pin::~Pin() {
  if (store_ != nullptr) store_->unpin(*expert_);
}

}  // namespace sluice::fetch
