// The part of DeviceUnit that measure_device.cc uses.
#include <array>

#include "engine/forward/unit/device_unit.h"

namespace sluice::engine {

using device::Event;
using device::Traffic;

namespace {

Event copy_to(device::Link& link, const fetch::DeviceView& view, const fetch::PlacedExpert& place) {
  const std::byte* const first = place.in_regions() ? place.memory.base : place.memory.view;
  const Event one = link.copy({first, view.first_bytes}, view.first, Traffic::kDemand).event();
  if (view.rest_bytes == 0) return one;
  return device::all_of(
      {one, link.copy({place.memory.rest, view.rest_bytes}, view.rest, Traffic::kDemand).event()});
}

}  // namespace

void DeviceUnit::put_sample(const fetch::PlacedExpert& place) {
  sample_ = store_.spare_view(0, place);
  copy_to(device_.link(), sample_, place).wait();
}

Event DeviceUnit::copy_sample(const fetch::PlacedExpert& place) {
  return copy_to(device_.link(), store_.spare_view(1, place), place);
}

Event DeviceUnit::copy_little() {
  return device_.link()
      .copy(std::as_bytes(std::span(&little_, 1)), store_.spare_buffer(1), Traffic::kDemand)
      .event();
}

Event DeviceUnit::copy_little_back() {
  return device_.link()
      .copy_back(store_.spare_buffer(0), std::as_writable_bytes(std::span(&little_, 1)), Traffic::kResult)
      .event();
}

// The inputs are what the device's memory holds.
Event DeviceUnit::compute_sample(std::uint32_t tokens) {
  kernels::InputFloats inputs{};
  for (const Form& form : layout_.forms) inputs[static_cast<std::size_t>(form.form)] = {form.inputs};
  const auto run = [this, mlp = mlp_of(sample_.view(false), tokens, inputs, 0, layout_.rows[0])](
                       const device::Access& access) { kernels_.run(access, std::span(&mlp, 1)); };
  device_.compute().enqueue({run, {{sample_.bytes(), tokens}}});
  return device_.compute().record();
}

}  // namespace sluice::engine
