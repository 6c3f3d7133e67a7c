// The state of one expert in DeviceStore. Only for DeviceStore's own files.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "device/event.h"
#include "device/link.h"
#include "experts/core/ids.h"
#include "fetch/device/device_stage.h"
#include "fetch/device/device_view.h"

namespace sluice::fetch {

struct ExpertOnDevice {
  experts::ExpertId id;
  std::uint32_t buffer = 0;
  std::optional<std::uint32_t> lsb_buffer = {};  // for an expert in slices of which the LSB is here
  DeviceView view;
  std::array<device::Ticket, 2> copies;  // copies of its regions
  device::Event was_idle;                // the buffers, before
  device::Event ready, last_use;

  bool is_in(DeviceStage stage) const { return stage_ == stage; }
  // `slices`: that a use needs; empty where experts are whole.
  bool has(experts::Parts slices) const { return !slices.has(experts::Part::kLsb) || lsb_buffer.has_value(); }
  // Nobody uses its buffers any more; never with an error.
  device::Event idle() const {
    return device::all_of(
        {was_idle, copies[0].event().settled(), copies[1].event().settled(), last_use.settled()});
  }
  // A step that is not legal trips a check. Where the expert is in that stage, there is no step.
  void enter(DeviceStage next) {
    SLUICE_CHECK(next == stage_ || may_follow(stage_, next),
                 fmt::format("expert {}/{} goes from {} to {}", id.layer, id.index, stage_name(stage_),
                             stage_name(next)));
    stage_ = next;
  }

 private:
  DeviceStage stage_ = DeviceStage::kAbsent;
};

}  // namespace sluice::fetch
