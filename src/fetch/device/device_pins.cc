#include "fetch/device/device_pins.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {

using experts::ExpertId;

bool DevicePins::launched(ExpertId id, const device::Event& done) {
  const auto pin = std::ranges::find(unlaunched_, id, &ExpertStore::Pin::id);
  if (pin == unlaunched_.end()) return false;
  hold(std::move(*pin), done.settled());
  unlaunched_.erase(pin);
  return true;
}

std::vector<ExpertId> DevicePins::ids() const {
  std::vector<ExpertId> ids;
  for (const Held& held : held_) ids.push_back(held.pin.id());
  return ids;
}

void DevicePins::release() {
  std::erase_if(held_, [](const Held& held) { return held.until.done(); });
}

void DevicePins::wait_for_one() {
  SLUICE_CHECK(!held_.empty());
  held_.front().until.wait();
  release();
}

void DevicePins::wait_for_all() {
  for (const Held& held : held_) held.until.wait();
  held_.clear();
  unlaunched_.clear();
}

}  // namespace sluice::fetch
