// How the experts of an event are handed out, and what becomes of them when a pin goes.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "fetch/fetch_executor.h"
#include "fetch/memory/ahead_queue.h"
#include "fetch/memory/expert_buffers.h"
#include "fetch/memory/expert_store.h"
#include "fetch/memory/expert_table.h"

namespace sluice::fetch {

using experts::ExpertId;
using experts::Part;

std::optional<ExpertStore::Pin> ExpertStore::next() {
  SLUICE_CHECK(missing_.empty(), "an event is prepared and has not begun");
  while (to_hand_out_ > 0) {
    pump();
    if (std::optional<Pin> resident = next_resident()) return resident;
    try {
      const FetchJob* const job = executor_.next();
      SLUICE_CHECK(job != nullptr, "nothing is under way, yet something waits");
      ExpertInMemory& expert = experts_[job->request.id];
      if (expert.is_in(ExpertStage::kFetching)) return pin(expert);
      ahead_.ended(expert);
    } catch (...) {
      if (pins_ == 0) abandon_event();  // somebody still reads what pins hold
      throw;
    }
  }
  return std::nullopt;
}

std::optional<ExpertStore::Pin> ExpertStore::next_resident() {
  if (ready_.empty()) return std::nullopt;
  ExpertInMemory& expert = *ready_.front();
  ready_.erase(ready_.begin());
  return pin(expert);
}

bool ExpertStore::next_needs_pins() {
  if (to_hand_out_ == 0 || pins_ == 0) return false;
  pump();
  const auto is_on_its_way = [](const ExpertInMemory* expert) {
    return expert->is_in(ExpertStage::kFetching);
  };
  return ready_.empty() && !ahead_.under_way() && std::ranges::none_of(running_, is_on_its_way);
}

ExpertStore::Pin ExpertStore::pin(ExpertInMemory& expert) {
  expert.enter(ExpertStage::kInUse);
  ++pins_;
  --to_hand_out_;
  return Pin(this, &expert, expert.id, place_of(expert));
}

void ExpertStore::unpin(ExpertInMemory& expert) {
  SLUICE_CHECK(pins_ > 0);
  --pins_;
  if (expert.job) {
    buffers_.job_ended(expert);
    std::erase(running_, &expert);
    spare_jobs_.give(std::move(expert.job));
  } else {
    buffers_.count_target(expert);
  }
  expert.enter(ExpertStage::kResting);
  buffers_.settle(expert);
}

PlacedExpert ExpertStore::place_of(const ExpertInMemory& expert) const {
  ExpertMemory memory{expert.full.data(), expert.base.data(), expert.rest.data()};
  if (!expert.needed().has_all(expert.layout.rules->rest)) memory.rest = nullptr;
  if (expert.from_planes && (expert.job || !expert.held.has(Part::kFull))) memory.view = nullptr;
  return {&expert.layout, expert.hidden, memory};
}

std::optional<PlacedExpert> ExpertStore::resident(ExpertId id) const {
  const ExpertInMemory& expert = experts_[id];
  if (!expert.is_in(ExpertStage::kResting)) return std::nullopt;
  const experts::PartRules& rules = *expert.layout.rules;
  PlacedExpert place{&expert.layout, expert.hidden, {}};
  if (rules.named_parts && expert.held.has_all(rules.least))
    place.memory = {nullptr, expert.base.data(),
                    expert.held.has_all(rules.stored) ? expert.rest.data() : nullptr};
  else if (expert.held.has(Part::kFull))
    place.memory.view = expert.full.data();
  else if (expert.held.has_all(rules.stored) && compute_packed_)
    place.memory = {nullptr, expert.base.data(), expert.rest.data()};
  else
    return std::nullopt;
  return place;
}

void ExpertStore::check_codes(const Pin& pin) const {
  if (pin.view().up.format != &codec::kFormatPacked) return;
  for (const PiecePlace& piece : pin.expert_->layout.pieces)
    executor_.decoder().check_codes(piece, pin.expert_->rest.data());
}

void ExpertStore::check_codes(ExpertId id) const {
  const ExpertInMemory& expert = experts_[id];
  const bool at_rest = expert.is_in(ExpertStage::kResting) || expert.is_in(ExpertStage::kInUse);
  if (!at_rest || !facts().can_be_packed || expert.rest.data() == nullptr) return;
  for (const PiecePlace& piece : expert.layout.pieces)
    executor_.decoder().check_codes(piece, expert.rest.data());
}

ExpertStore::Pin::Pin(Pin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      expert_(other.expert_),
      id_(other.id_),
      place_(other.place_),
      view_(other.view_) {}

ExpertStore::Pin& ExpertStore::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    if (store_ != nullptr) store_->unpin(*expert_);
    store_ = std::exchange(other.store_, nullptr);
    expert_ = other.expert_;
    id_ = other.id_;
    place_ = other.place_;
    view_ = other.view_;
  }
  return *this;
}

ExpertStore::Pin::~Pin() {
  if (store_ != nullptr) store_->unpin(*expert_);
}

}  // namespace sluice::fetch
