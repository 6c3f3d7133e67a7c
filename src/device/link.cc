#include "device/link.h"

#include "base/error.h"

namespace sluice::device {

std::string_view traffic_name(Traffic traffic) {
  constexpr std::array<std::string_view, kTraffics> kNames = {"demand", "result", "prefetch", "update"};
  const auto index = static_cast<std::size_t>(traffic);
  SLUICE_CHECK(index < kTraffics);
  return kNames[index];
}

}  // namespace sluice::device
