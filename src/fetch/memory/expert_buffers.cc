#include "fetch/memory/expert_buffers.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "fetch/extract_planes.h"

namespace sluice::fetch {

using device::Account;
using experts::Part;
using experts::Parts;

ExpertBuffers::~ExpertBuffers() {
  if (page_cache_ > 0) accountant_.release(Account::kStaging, page_cache_);
}

void ExpertBuffers::configure(Bytes capacity, Bytes staging, Bytes page_cache) {
  if (page_cache > 0) accountant_.charge(Account::kStaging, page_cache);
  page_cache_ = page_cache;
  capacity_ = capacity;
  pool_.emplace(accountant_, Account::kStaging, capacity + staging - page_cache);
}

bool ExpertBuffers::may_stay(const ExpertInMemory& expert, Parts parts) const {
  const experts::ExpertBytes bytes = experts_.bytes(expert.id);
  return settled_ - bytes.of(expert.settled) + bytes.of(parts) <= capacity_;
}

bool ExpertBuffers::fits(const ExpertInMemory& expert) const {
  const Bytes reads = expert.job_reads();
  return may_stay(expert, expert.target) && pool_->in_use() + expert.job_buffers() <= pool_->limit() &&
         (page_cache_ == 0 || reads == 0 || reading_ + reads <= page_cache_);
}

bool ExpertBuffers::fits_ahead(const ExpertInMemory& expert) const {
  const Bytes reads = expert.job_reads();
  return fits(expert) &&
         pool_->in_use() + expert.job_buffers() + experts_.facts().largest_buffers <= pool_->limit() &&
         (page_cache_ == 0 || reading_ + reads + experts_.facts().largest_read <= page_cache_);
}

bool ExpertBuffers::has_room_for_words(const ExpertInMemory& expert) const {
  return pool_->in_use() + expert.layout.view_bytes <= pool_->limit();
}

void ExpertBuffers::count_target(ExpertInMemory& expert) {
  const experts::ExpertBytes bytes = experts_.bytes(expert.id);
  settled_ = settled_ - bytes.of(expert.settled) + bytes.of(expert.target);
  expert.settled = expert.target;
}

void ExpertBuffers::take(ExpertInMemory& expert) {
  count_target(expert);
  FetchRequest& request = expert.job->request;
  if (!expert.from_planes) expert.full = pool_->take(expert.layout.view_bytes);
  request.view = expert.full.data();
  if (expert.layout.rules->words != experts::WordSource::kStored) {
    if (request.read_base) expert.base = pool_->take(expert.layout.base.bytes);
    if (request.read_rest) expert.rest = pool_->take(expert.layout.rest.bytes);
    request.base = expert.base.data();
    request.rest = expert.rest.data();
  } else {
    request.base = request.view;
  }
  reading_ += expert.job_reads();
}

bool ExpertBuffers::take_return(ExpertInMemory& expert, Parts parts) {
  const ExpertLayout& layout = expert.layout;
  const bool words = parts.has(Part::kFull);
  const Bytes bytes = words ? layout.view_bytes : layout.base.bytes + layout.rest.bytes;
  if (!may_stay(expert, parts) || pool_->in_use() + bytes + experts_.facts().largest_buffers > pool_->limit())
    return false;
  expert.target = parts;
  count_target(expert);
  if (words) {
    expert.full = pool_->take(layout.view_bytes);
  } else {
    expert.base = pool_->take(layout.base.bytes);
    expert.rest = pool_->take(layout.rest.bytes);
  }
  return true;
}

void ExpertBuffers::return_ended(ExpertInMemory& expert, bool complete) {
  if (complete) {
    expert.held = expert.target;
    return settle(expert);
  }
  for (device::HostBuffer* buffer : {&expert.full, &expert.base, &expert.rest})
    if (*buffer) pool_->give(std::move(*buffer));
  expert.target = {};
  count_target(expert);
}

void ExpertBuffers::take_words(ExpertInMemory& expert) {
  expert.full = pool_->take(expert.layout.view_bytes);
  expert.from_planes = false;
}

void ExpertBuffers::job_ended(ExpertInMemory& expert) {
  reading_ -= expert.job_reads();
  expert.held = expert.held | expert.made();
}

void ExpertBuffers::settle(ExpertInMemory& expert) {
  if (expert.target == Parts(Part::kSm) && expert.held == Parts(Part::kFull)) keep_planes(expert);
  SLUICE_CHECK(expert.held.has_all(expert.target),
               fmt::format("expert {}/{} is to keep what it never had", expert.id.layer, expert.id.index));
  drop(expert, expert.held - expert.target);
  for (device::HostBuffer* buffer : {&expert.full, &expert.base, &expert.rest})
    buffer->charge_to(Account::kExperts);
}

// State S from F alone (an expert of the event, or a reduced one): takes the planes out of the words into a
// free buffer if there is one, so that nothing is mapped or unmapped; otherwise in place if they fit, and the
// rest of the buffer goes.
void ExpertBuffers::keep_planes(ExpertInMemory& expert) {
  const ExpertLayout& layout = expert.layout;
  if (pool_->has_free(layout.base.bytes)) {
    expert.base = pool_->take(layout.base.bytes);
    extract_planes(layout, expert.full.data(), expert.base.data(), extract_scratch_);
    pool_->give(std::move(expert.full));
  } else if (planes_fit_in_place(layout)) {
    extract_planes(layout, expert.full.data(), expert.full.data(), extract_scratch_);
    expert.base = std::move(expert.full);
    pool_->shrink(expert.base, layout.base.bytes);
  } else {  // narrow matrices in tiles: a few KiB
    const std::vector<std::byte> view(expert.full.data(), expert.full.data() + layout.view_bytes);
    pool_->give(std::move(expert.full));
    expert.base = pool_->take(layout.base.bytes);
    extract_planes(layout, view.data(), expert.base.data(), extract_scratch_);
  }
  expert.held = Part::kSm;
}

void ExpertBuffers::drop(ExpertInMemory& expert, Parts parts) {
  if (parts.has(Part::kFull)) pool_->give(std::move(expert.full));
  if (expert.layout.rules->in_base(parts)) pool_->give(std::move(expert.base));
  if (expert.layout.rules->in_rest(parts)) pool_->give(std::move(expert.rest));
  expert.held = expert.held - parts;
}

void ExpertBuffers::lend_to_job(ExpertInMemory& expert, Parts parts) {
  if (expert.layout.rules->in_base(parts)) expert.base.charge_to(Account::kStaging);
  if (expert.layout.rules->in_rest(parts)) expert.rest.charge_to(Account::kStaging);
}

void ExpertBuffers::abandon(ExpertInMemory& expert) {
  for (const auto& [part, buffer] : {std::pair{Parts(Part::kFull), &expert.full},
                                     std::pair{Parts(expert.layout.rules->base), &expert.base},
                                     std::pair{expert.layout.rules->rest, &expert.rest}}) {
    if (expert.held.has_all(part) && expert.target.has_all(part)) continue;
    pool_->give(std::move(*buffer));
    expert.held = expert.held - part;
  }
  expert.job.reset();
  expert.target = expert.held;
  count_target(expert);
}

}  // namespace sluice::fetch
