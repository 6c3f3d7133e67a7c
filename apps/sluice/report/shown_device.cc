#include "report/shown_device.h"

#include <fmt/format.h>

#include <optional>

#include "base/duration.h"
#include "base/error.h"
#include "base/rate.h"
#include "base/wrapped_text.h"
#include "device/choice/device_spec.h"

namespace sluice::app {
namespace {

std::string rate_text(const std::optional<double>& rate) { return rate ? format_rate(*rate) : "inf"; }

}  // namespace

std::string shown_device(std::string_view name) {
  const std::size_t end = name.find(", ");  // what stands behind the specification
  const std::string_view written = name.substr(0, end), more = end == name.npos ? "" : name.substr(end);
  try {
    const device::DeviceSpec device = device::parse_device_spec(written, "");
    if (!device.is_played()) {
      const std::optional<double> limit = device.link_limit();
      return std::string(written.substr(0, written.find(','))) +
             (limit ? ", link limited to " + format_rate(*limit) : "") + std::string(more);
    }
    const device::EmulatedSpec& spec = *device.emulated();
    return fmt::format(
        "emulated:link={}, latency={}, compute={}, host={}, threads={}, dilate={:g}, duplex={}{}",
        rate_text(spec.link_bytes_per_s), format_duration(spec.latency_s),
        rate_text(spec.compute_bytes_per_s), rate_text(spec.host_bytes_per_s), spec.threads, spec.dilation,
        spec.full_duplex ? "full" : "half", more);
  } catch (const Error&) {
    return breakable(name);
  }
}

}  // namespace sluice::app
