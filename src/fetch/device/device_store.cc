#include "fetch/device/device_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::fetch {

using device::CopyStage;
using device::Event;
using device::Ticket;
using device::Traffic;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

namespace {

DeviceBuffers make_buffers(device::Device& device, const DeviceStoreOptions& options, Bytes bytes,
                           bool have_slots) {
  const bool any = bytes > 0;
  return {device.memory(), any && have_slots ? options.slots : 0, any ? options.staging : 0, bytes};
}

}  // namespace

DeviceStore::DeviceStore(device::Device& device, ExpertStore& host, const DeviceStoreOptions& options)
    : device_(device),
      host_(host),
      slots_(options.slots),
      staging_(options.staging),
      slot_slices_(options.slot_slices),
      buffers_(make_buffers(device, options, buffer_bytes(host, options.packed).expert, true)),
      lsb_buffers_(make_buffers(device, options, buffer_bytes(host, options.packed).lsb,
                                options.slot_slices.has(Part::kLsb))),
      returns_(device, host, buffers_) {
  SLUICE_CHECK(options.staging >= 2, "an expert cannot be copied while another is computed with");
}

DeviceStore::~DeviceStore() {
  abandon_event();
  for (auto& [id, expert] : experts_) withdraw(expert);
  for (auto& [id, expert] : experts_)
    for (const Ticket& ticket : expert.copies) ticket.event().settled().wait();
}

DeviceBufferBytes DeviceStore::buffer_bytes(const ExpertStore& host, bool packed) {
  const ExpertFacts& facts = host.facts();
  if (facts.sliced) return {facts.largest_base, facts.largest_rest};
  return {DeviceView::buffer_bytes(std::max(packed ? 0 : facts.largest_resident, facts.largest_read)), 0};
}

void DeviceStore::release_host(const experts::EventOutcome& host, const experts::DevicePlan& plan) {
  returns_.settle();
  for (const experts::DeviceUse& use : plan.uses) returns_.finish(use.id);
  for (const auto* used : {&host.hits, &host.misses})
    for (const experts::Admission& one : *used) returns_.finish(one.id);
  for (const experts::Eviction& eviction : host.evicted) returns_.give_up(eviction.id);
  for (std::size_t i = host.trimmed; i < host.trimmed + host.given; ++i) finish_update(host.evicted[i].id);
  std::vector<ExpertId> changed = host.reduced;
  for (const experts::Eviction& eviction : host.evicted) changed.push_back(eviction.id);
  for (const auto* used : {&host.hits, &host.misses})
    for (const experts::Admission& one : *used)
      if (one.parts != one.before) changed.push_back(one.id);
  for (const ExpertId id : changed) {
    const auto found = experts_.find(id);
    if (found == experts_.end() || found->second.ready.done()) continue;
    withdraw(found->second);
    for (const Ticket& ticket : found->second.copies) ticket.event().settled().wait();
    if (!found->second.ready.error()) continue;  // it was in its last chunk
    if (found->second.is_in(DeviceStage::kAhead)) {
      ++counters_.wasted;
    } else {
      ++counters_.updates_given_up;
      const Parts parts = found->second.lsb_buffer ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
      updates_.push_back({.id = id, .parts = parts});  // tried again when the host has it
    }
    drop(found);
  }
  leaving_.clear();
  for (const experts::Eviction& eviction : plan.evicted) leaving_.push_back(eviction.id);
}

void DeviceStore::begin(std::uint32_t layer, const experts::DevicePlan& plan) {
  SLUICE_CHECK(uses_.empty(), "an event is running");
  leaving_.clear();
  for (const experts::DeviceUse& use : plan.uses) {
    EventUse& event_use = uses_[use.id];
    event_use.stays = use.stays;
    event_use.view = use.view;
    const auto found = experts_.find(use.id);
    const bool is_there = found != experts_.end() && found->second.has(use.view);
    if (use.from != experts::DeviceBytes::kLink && !is_there) ++counters_.missing;
  }
  for (const experts::Eviction& eviction : plan.evicted) {
    forget_update(eviction.id);
    const auto found = experts_.find(eviction.id);
    if (found == experts_.end()) continue;
    if (uses_.contains(eviction.id))
      found->second.enter(DeviceStage::kPasses);
    else
      leave(found);
  }
  for (const experts::DeviceUpdate& update : plan.updates) {
    const auto found = experts_.find(update.id);
    if (found == experts_.end()) {
      updates_.push_back(update);
    } else {
      found->second.enter(DeviceStage::kStays);
      trim(found->second);
    }
  }
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool unused = expert->second.is_in(DeviceStage::kAhead) && expert->first.layer == layer &&
                        !uses_.contains(expert->first);
    counters_.wasted += unused ? 1 : 0;
    expert = unused ? drop(expert) : std::next(expert);
  }
  for (const auto& [id, use] : uses_) {
    forget_update(id);
    const auto found = experts_.find(id);
    if (found == experts_.end()) continue;
    if (const std::optional<Error> error = found->second.ready.error()) {  // its copy has failed
      ++counters_.missing;
      uses_.at(id).lost = error;
      drop(found);
      continue;
    }
    if (found->second.is_in(DeviceStage::kAhead))
      found->second.ready.done() ? ++counters_.useful : ++counters_.late;
    for (const Ticket& ticket : found->second.copies)
      if (ticket) device_.link().promote(ticket);
    found->second.enter(use.stays ? DeviceStage::kStays : DeviceStage::kPasses);
  }
  returns_.begin();
}

bool DeviceStore::has(const experts::DeviceUse& use) const {
  const auto found = experts_.find(use.id);
  return found != experts_.end() && found->second.has(use.view) && !found->second.ready.error();
}

bool DeviceStore::stays(ExpertId id) const {
  const auto found = experts_.find(id);
  return found != experts_.end() && found->second.is_in(DeviceStage::kStays);
}

DeviceStore::Use DeviceStore::use_of(Expert& expert, Parts slices) const {
  return {expert.view, is_low(slices), expert.ready};
}

DeviceStore::Use DeviceStore::use(ExpertId id) {
  ++counters_.hits;
  return use_of(experts_.at(id), uses_.at(id).view);
}

DeviceStore::Use DeviceStore::use(ExpertStore::Pin pin) {
  if (std::optional<Use> here = use_in_place(pin)) return *here;
  const Parts view = uses_.at(pin.id()).view;
  const auto found = experts_.find(pin.id());
  if (found != experts_.end() && found->second.has(view))
    ++counters_.hits;
  else
    copy_missing(pin.place(), pin.id());
  const Use use = use_of(experts_.at(pin.id()), view);
  if (!use.ready.done()) pins_.hold(std::move(pin), use.ready.settled());
  return use;
}

void DeviceStore::copy_missing(const PlacedExpert& place, ExpertId id) {
  const EventUse& use = uses_.at(id);
  ++(use.stays ? counters_.loads : counters_.streamed);
  const auto found = experts_.find(id);
  if (found != experts_.end()) return copy_lsb(found->second, place, Traffic::kDemand);
  make_room();
  copy(id, needed_of(place, use.view), Traffic::kDemand,
       use.stays ? DeviceStage::kStays : DeviceStage::kPasses);
}

PlacedExpert DeviceStore::needed_of(const PlacedExpert& place, Parts view) const {
  PlacedExpert needed = place;
  if (is_low(view)) needed.memory.rest = nullptr;
  return needed;
}

void DeviceStore::keep_if_copied(ExpertStore::Pin pin) {
  const Event& copied = uses_.at(pin.id()).copied;
  if (!copied.done()) pins_.hold(std::move(pin), copied);
}

// Experts that leave in this event hold their buffers until they are used. One that still waits for a slice
// may have to go first: it is copied again.
void DeviceStore::make_room() {
  for (returns_.begin(); !buffers_.any() && returns_.waiting(); returns_.begin()) {
    if (pins_.empty())
      returns_.lose_first();
    else
      wait_for_a_pin();  // it takes up room in the host's memory
  }
  if (buffers_.any()) return;
  const auto leaves =
      std::ranges::find_if(experts_, [](const auto& one) { return one.second.is_in(DeviceStage::kPasses); });
  SLUICE_CHECK(leaves != experts_.end(), "more experts stay on the device than it has slots");
  drop(leaves);
}

DeviceStore::Expert& DeviceStore::copy(ExpertId id, const PlacedExpert& place, Traffic traffic,
                                       DeviceStage stage) {
  const DeviceBuffers::Taken buffer = buffers_.take();
  const auto [at, is_new] = experts_.try_emplace(id);
  SLUICE_CHECK(is_new, "an expert that has a buffer is copied to another one");
  Expert& expert = at->second;
  expert.id = id;
  expert.buffer = buffer.index;
  expert.view =
      in_slices() ? DeviceView::base_in(buffer.address, place) : DeviceView::in(buffer.address, place);
  expert.was_idle = buffer.idle;
  expert.enter(stage);
  SLUICE_CHECK(expert.view.bytes() <= buffers_.bytes_each(), "an expert is larger than its slot");
  const std::byte* const first = place.in_regions() ? place.memory.base : place.memory.view;
  device::Link& link = device_.link();
  expert.copies[0] = link.copy({first, expert.view.first_bytes}, expert.view.first, traffic, buffer.idle);
  if (expert.view.rest_bytes > 0)
    expert.copies[1] =
        link.copy({place.memory.rest, expert.view.rest_bytes}, expert.view.rest, traffic, buffer.idle);
  expert.ready = device::all_of({expert.copies[0].event(), expert.copies[1].event()});
  if (in_slices() && place.memory.rest != nullptr) copy_lsb(expert, place, traffic);
  return expert;
}

void DeviceStore::copy_lsb(Expert& expert, const PlacedExpert& place, Traffic traffic) {
  SLUICE_CHECK(place.memory.rest != nullptr, "the host computes with fewer slices than the device");
  const DeviceBuffers::Taken buffer = lsb_buffers_.take();
  expert.lsb_buffer = buffer.index;
  expert.view.put_rest(buffer.address, place.rest_bytes());
  SLUICE_CHECK(expert.view.rest_bytes <= lsb_buffers_.bytes_each(), "a slice is larger than its slot");
  expert.was_idle = device::all_of({expert.was_idle, buffer.idle});
  expert.copies[1] = device_.link().copy({place.memory.rest, expert.view.rest_bytes}, expert.view.rest,
                                         traffic, buffer.idle);
  expert.ready = device::all_of({expert.ready, expert.copies[1].event()});
}

void DeviceStore::trim(Expert& expert) {
  if (!expert.lsb_buffer || !expert.is_in(DeviceStage::kStays) || slot_slices_.has(Part::kLsb)) return;
  lsb_buffers_.give(*expert.lsb_buffer, expert.idle());
  expert.lsb_buffer.reset();
  expert.view.put_rest({}, 0);
  expert.ready = device::all_of({expert.copies[0].event(), expert.copies[1].event().settled()});
}

void DeviceStore::give_buffers(const Expert& expert) {
  buffers_.give(expert.buffer, expert.idle());
  if (expert.lsb_buffer) lsb_buffers_.give(*expert.lsb_buffer, expert.idle());
}

void DeviceStore::forget_update(ExpertId id) {
  std::erase_if(updates_, [&](const experts::DeviceUpdate& update) { return update.id == id; });
}

void DeviceStore::withdraw(const Expert& expert) {
  for (const Ticket& ticket : expert.copies)
    if (ticket) device_.link().withdraw(ticket);
}

DeviceStore::Experts::iterator DeviceStore::drop(Experts::iterator found) {
  Expert& expert = found->second;
  withdraw(expert);
  expert.enter(DeviceStage::kAbsent);
  give_buffers(expert);
  return experts_.erase(found);
}

void DeviceStore::leave(Experts::iterator found) {
  if (!host_.expects(found->first)) {
    drop(found);
    return;
  }
  Expert& expert = found->second;
  expert.enter(DeviceStage::kAbsent);
  returns_.add({found->first, expert.view, expert.buffer, expert.ready, expert.idle()});
  experts_.erase(found);
}

void DeviceStore::used(ExpertId id, const Event& done) {
  uses_.at(id).computed = true;
  if (pins_.launched(id, done)) return;
  const auto found = experts_.find(id);
  SLUICE_CHECK(found != experts_.end(), "a launch reads an expert that is not there");
  // Launches of a stream follow each other, but not those of two.
  found->second.last_use = device::all_of({found->second.last_use.settled(), done.settled()});
  uses_.at(id).copied = found->second.ready.settled();
  if (!found->second.is_in(DeviceStage::kPasses)) return trim(found->second);
  if (host_.expects(id)) return leave(found);
  found->second.enter(DeviceStage::kAbsent);
  give_buffers(found->second);
  experts_.erase(found);
}

void DeviceStore::finish_event() {
  for (const auto& [id, use] : uses_) {
    if (use.computed) continue;
    if (use.lost) throw *use.lost;
    const auto found = experts_.find(id);  // its copy may have failed since begin()
    SLUICE_CHECK(found != experts_.end() && found->second.ready.error(),
                 std::to_string(id.layer) + "/" + std::to_string(id.index) + " was not computed");
    throw *found->second.ready.error();
  }
  pins_.wait_for_all();
  uses_.clear();
  end_returns();
  begin_updates();
}

// There is room for all of them, unless the host has lost count of what it has.
void DeviceStore::end_returns() {
  returns_.begin();
  while (returns_.waiting()) returns_.lose_first();
}

void DeviceStore::abandon_event() noexcept {
  for (const ExpertId id : pins_.ids())
    if (const auto found = experts_.find(id); found != experts_.end()) withdraw(found->second);
  // A copy whose launch was queued has left the table: it ends by itself, as a launch does.
  pins_.wait_for_all();
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool gone = expert->second.is_in(DeviceStage::kPasses) || expert->second.ready.error().has_value();
    if (!gone) trim(expert->second);
    expert = gone ? drop(expert) : std::next(expert);
  }
  // The event has not come to begin(): its cache has no room for these any more.
  for (const ExpertId id : leaving_) {
    forget_update(id);
    if (const auto found = experts_.find(id); found != experts_.end()) drop(found);
  }
  leaving_.clear();
  uses_.clear();
  end_returns();
}

}  // namespace sluice::fetch
