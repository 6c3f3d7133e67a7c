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

DeviceStore::DeviceStore(device::Device& device, ExpertStore& host, const DeviceStoreOptions& options)
    : device_(device),
      host_(host),
      slots_(options.slots),
      staging_(options.staging),
      buffers_(device.memory(), options.slots, options.staging, buffer_bytes(host, options.packed)),
      returns_(device, host, buffers_) {
  SLUICE_CHECK(options.staging >= 2, "an expert cannot be copied while another is computed with");
}

DeviceStore::~DeviceStore() {
  abandon_event();
  for (auto& [id, expert] : experts_) withdraw(expert);
  for (auto& [id, expert] : experts_)
    for (const Ticket& ticket : expert.copies) ticket.event().settled().wait();
}

Bytes DeviceStore::buffer_bytes(const ExpertStore& host, bool packed) {
  const Bytes words = packed ? 0 : host.facts().largest_resident;
  return DeviceView::buffer_bytes(std::max(words, host.facts().largest_read));
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
      updates_.push_back(id);  // tried again when the host has it
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
    uses_[use.id].stays = use.stays;
    if (use.from != experts::DeviceBytes::kLink && !experts_.contains(use.id)) ++counters_.missing;
  }
  for (const experts::Eviction& eviction : plan.evicted) {
    std::erase(updates_, eviction.id);
    const auto found = experts_.find(eviction.id);
    if (found == experts_.end()) continue;
    if (uses_.contains(eviction.id))
      found->second.enter(DeviceStage::kPasses);
    else
      leave(found);
  }
  for (const experts::DeviceUpdate& update : plan.updates) {
    const auto found = experts_.find(update.id);
    if (found == experts_.end())
      updates_.push_back(update.id);
    else
      found->second.enter(DeviceStage::kStays);
  }
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool unused = expert->second.is_in(DeviceStage::kAhead) && expert->first.layer == layer &&
                        !uses_.contains(expert->first);
    counters_.wasted += unused ? 1 : 0;
    expert = unused ? drop(expert) : std::next(expert);
  }
  for (const auto& [id, use] : uses_) {
    std::erase(updates_, id);
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

// The host drops it now. The modelled clock says that it is on the device: so it shall be.
void DeviceStore::finish_update(ExpertId id) {
  if (std::ranges::find(updates_, id) != updates_.end()) begin_updates();
  const auto found = experts_.find(id);
  if (found == experts_.end() || found->second.ready.done()) return;
  ++counters_.updates_late;
  for (const Ticket& ticket : found->second.copies)
    if (ticket) device_.link().promote(ticket);
  for (const Ticket& ticket : found->second.copies) ticket.event().settled().wait();
}

bool DeviceStore::has(ExpertId id) const {
  const auto found = experts_.find(id);
  return !host_.facts().sliced && found != experts_.end() && !found->second.ready.error();
}

bool DeviceStore::stays(ExpertId id) const {
  const auto found = experts_.find(id);
  return found != experts_.end() && found->second.is_in(DeviceStage::kStays);
}

DeviceStore::Use DeviceStore::use_of(Expert& expert, bool low) const {
  return {expert.view, low, expert.ready};
}

DeviceStore::Use DeviceStore::use(ExpertId id) {
  ++counters_.hits;
  return use_of(experts_.at(id), false);
}

DeviceStore::Use DeviceStore::use(ExpertStore::Pin pin) {
  const PlacedExpert place = pin.place();
  const bool low = place.layout->rules->named_parts && place.memory.rest == nullptr;
  auto found = experts_.find(pin.id());
  if (found != experts_.end() && !found->second.view.can_stand_for(place)) {
    drop(found);
    found = experts_.end();
  }
  if (found != experts_.end()) {
    ++counters_.hits;
  } else {
    const bool stays = uses_.at(pin.id()).stays;
    make_room();
    ++(stays ? counters_.loads : counters_.streamed);
    copy(pin.id(), place, Traffic::kDemand, stays ? DeviceStage::kStays : DeviceStage::kPasses);
    found = experts_.find(pin.id());
  }
  const Use use = use_of(found->second, low);
  if (!use.ready.done()) pins_.push_back({std::move(pin), use.ready.settled()});
  return use;
}

void DeviceStore::keep_if_copied(ExpertStore::Pin pin) {
  const auto found = experts_.find(pin.id());
  const Event copied = found != experts_.end() ? found->second.ready.settled() : uses_.at(pin.id()).copied;
  if (!copied.done()) pins_.push_back({std::move(pin), copied});
}

// Experts that leave in this event hold their buffers until they are used. One of slices may come behind
// those that are to stay: it is copied again.
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
  expert.view = DeviceView::in(buffer.address, place);
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
  return expert;
}

void DeviceStore::withdraw(const Expert& expert) {
  for (const Ticket& ticket : expert.copies)
    if (ticket) device_.link().withdraw(ticket);
}

DeviceStore::Experts::iterator DeviceStore::drop(Experts::iterator found) {
  Expert& expert = found->second;
  withdraw(expert);
  expert.enter(DeviceStage::kAbsent);
  buffers_.give(expert.buffer,
                device::all_of({expert.was_idle, expert.copies[0].event().settled(),
                                expert.copies[1].event().settled(), expert.last_use.settled()}));
  return experts_.erase(found);
}

void DeviceStore::leave(Experts::iterator found) {
  if (!host_.expects(found->first)) {
    drop(found);
    return;
  }
  Expert& expert = found->second;
  expert.enter(DeviceStage::kAbsent);
  returns_.add({found->first, expert.view, expert.buffer, expert.ready,
                device::all_of({expert.was_idle, expert.copies[0].event().settled(),
                                expert.copies[1].event().settled(), expert.last_use.settled()})});
  experts_.erase(found);
}

void DeviceStore::used(ExpertId id, const Event& done) {
  const auto found = experts_.find(id);
  SLUICE_CHECK(found != experts_.end(), "a launch reads an expert that is not there");
  uses_.at(id).computed = true;
  // Launches of a stream follow each other, but not those of two.
  found->second.last_use = device::all_of({found->second.last_use.settled(), done.settled()});
  if (!found->second.is_in(DeviceStage::kPasses)) return;
  uses_.at(id).copied = found->second.ready.settled();
  if (host_.expects(id)) return leave(found);
  found->second.enter(DeviceStage::kAbsent);
  buffers_.give(found->second.buffer,
                device::all_of({found->second.was_idle, uses_.at(id).copied, found->second.last_use}));
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
  for (const HeldPin& held : pins_) held.until.wait();
  pins_.clear();
  uses_.clear();
  end_returns();
  begin_updates();
}

// There is room for all of them, unless the host has lost count of what it has.
void DeviceStore::end_returns() {
  returns_.begin();
  while (returns_.waiting()) returns_.lose_first();
}

void DeviceStore::begin_updates() {
  std::erase_if(updates_, [&](ExpertId id) {
    const std::optional<PlacedExpert> place = host_.resident(id);
    if (!place || !buffers_.any()) return false;
    ++counters_.updates;
    copy(id, *place, Traffic::kUpdate, DeviceStage::kStays);
    return true;
  });
}

void DeviceStore::abandon_event() noexcept {
  for (const HeldPin& held : pins_) {
    const auto found = experts_.find(held.pin.id());
    if (found != experts_.end()) withdraw(found->second);
  }
  // A copy whose launch was queued has left the table: it ends by itself.
  for (const HeldPin& held : pins_) held.until.wait();
  pins_.clear();
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool gone = expert->second.is_in(DeviceStage::kPasses) || expert->second.ready.error().has_value();
    expert = gone ? drop(expert) : std::next(expert);
  }
  // The event has not come to begin(): its cache has no room for these any more.
  for (const ExpertId id : leaving_) {
    std::erase(updates_, id);
    if (const auto found = experts_.find(id); found != experts_.end()) drop(found);
  }
  leaving_.clear();
  uses_.clear();
  end_returns();
}

void DeviceStore::release_pins() {
  std::erase_if(pins_, [](const HeldPin& held) { return held.until.done(); });
}

void DeviceStore::wait_for_a_pin() {
  SLUICE_CHECK(!pins_.empty());
  pins_.front().until.wait();
  release_pins();
}

void DeviceStore::prefetch(std::span<const ExpertId> ids) {
  const auto named = [&](ExpertId id) { return std::ranges::find(ids, id) != ids.end(); };
  std::size_t ahead = 0;
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool is_ahead = expert->second.is_in(DeviceStage::kAhead);
    const bool unwanted = is_ahead && !named(expert->first) && !uses_.contains(expert->first);
    counters_.wasted += unwanted ? 1 : 0;
    ahead += is_ahead && !unwanted ? 1 : 0;
    expert = unwanted ? drop(expert) : std::next(expert);
  }
  for (const ExpertId id : ids) {
    if (ahead + 2 >= staging_ || !buffers_.any()) return;
    if (experts_.contains(id)) continue;
    const std::optional<PlacedExpert> place = host_.resident(id);
    if (!place) continue;
    ++counters_.prefetches;
    ++ahead;
    copy(id, *place, Traffic::kPrefetch, DeviceStage::kAhead);
  }
}

}  // namespace sluice::fetch
