#include "fetch/device/device_returns.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace sluice::fetch {

using device::Event;
using device::Ticket;
using experts::ExpertId;

DeviceReturns::~DeviceReturns() {
  while (!under_way_.empty()) give_up(under_way_.front().id);
}

void DeviceReturns::begin() {
  while (!waiting_.empty()) {
    const Leaving& leaving = waiting_.front();
    if (leaving.ready.error() || !host_.expects(leaving.id)) {
      lose_first();
      continue;
    }
    const std::optional<ReturnPlace> place = host_.begin_return(leaving.id, leaving.view.in_regions);
    if (!place) {
      if (host_.expects(leaving.id)) return;  // there is no room now
      lose_first();
      continue;
    }
    SLUICE_CHECK(
        place->first.size() == leaving.view.first_bytes && place->rest.size() == leaving.view.rest_bytes,
        "an expert comes back larger or smaller than it is kept");
    UnderWay one{.id = leaving.id, .copies = {}};
    device::Link& link = device_.link();
    one.copies[0] = link.copy_back(leaving.view.first, place->first, device::Traffic::kUpdate, leaving.ready);
    if (!place->rest.empty())
      one.copies[1] = link.copy_back(leaving.view.rest, place->rest, device::Traffic::kUpdate, leaving.ready);
    buffers_.give(leaving.buffer, device::all_of({leaving.idle, one.copies[0].event().settled(),
                                                  one.copies[1].event().settled()}));
    ++counters_.begun;
    under_way_.push_back(one);
    waiting_.erase(waiting_.begin());
  }
}

void DeviceReturns::lose_first() {
  ++counters_.lost;
  buffers_.give(waiting_.front().buffer, waiting_.front().idle);
  waiting_.erase(waiting_.begin());
}

void DeviceReturns::settle() {
  std::erase_if(under_way_, [&](const UnderWay& one) {
    for (const Ticket& ticket : one.copies)
      if (!ticket.event().done()) return false;
    end(one);
    return true;
  });
}

void DeviceReturns::end(const UnderWay& one) {
  const bool complete = std::ranges::none_of(
      one.copies, [](const Ticket& ticket) { return ticket.event().error().has_value(); });
  ++(complete ? counters_.complete : counters_.lost);
  host_.end_return(one.id, complete);
}

std::vector<DeviceReturns::UnderWay>::iterator DeviceReturns::find(ExpertId id) {
  return std::ranges::find(under_way_, id, &UnderWay::id);
}

void DeviceReturns::finish(ExpertId id) {
  const auto one = find(id);
  if (one == under_way_.end()) return;
  for (const Ticket& ticket : one->copies)
    if (ticket) device_.link().promote(ticket);
  for (const Ticket& ticket : one->copies) ticket.event().settled().wait();
  ++counters_.late;
  end(*one);
  under_way_.erase(one);
}

void DeviceReturns::give_up(ExpertId id) {
  const auto one = find(id);
  if (one == under_way_.end()) return;
  for (const Ticket& ticket : one->copies)
    if (ticket) device_.link().withdraw(ticket);
  for (const Ticket& ticket : one->copies) ticket.event().settled().wait();
  ++counters_.lost;
  host_.end_return(id, false);
  under_way_.erase(one);
}

}  // namespace sluice::fetch
