#include "report/device_costs.h"

#include <fmt/format.h>

#include <string>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/rate.h"
#include "report/shown_device.h"

namespace sluice::app {
namespace {

std::string times_text(const engine::TimesOfTokens& times) {
  std::string text;
  for (const auto& [tokens, time] : times)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tokens, format_duration(time.median));
  return text;
}

std::string link_text(const engine::LinkSpeed& link) {
  return fmt::format("{} behind {}", format_rate(link.bytes_per_s), format_duration(link.latency_s));
}

}  // namespace

std::vector<ReportRow> device_cost_rows(const engine::DeviceProfile& profile) {
  return {{"device", shown_device(profile.device)},
          {"link",
           fmt::format("{} idle, {} beside the host's experts: {} for an expert of {}",
                       link_text(profile.idle), link_text(profile.busy),
                       format_duration(profile.busy.seconds(profile.expert)), format_bytes(profile.expert))},
          {"an expert", "by tokens, on the host " + times_text(profile.host) + "; on the device " +
                            (profile.computes_experts() ? times_text(profile.run) : "none")},
          {"a layer", fmt::format("attention and norms by tokens {}; prediction {}; a few bytes down {}",
                                  times_text(profile.attention), format_duration(profile.predict.median),
                                  format_duration(profile.sync.median))}};
}

}  // namespace sluice::app
