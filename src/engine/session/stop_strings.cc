#include "engine/session/stop_strings.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopStrings::append(const std::string& text) {
  if (found()) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::size_t at = held_.find(stops_[i]);
    if (at >= first) continue;
    first = at;
    found_ = i;
  }
  if (first != std::string::npos) {
    held_.resize(first);
    return std::exchange(held_, {});
  }
  // Keeps the longest tail that is a proper prefix of some stop string.
  std::size_t keep = 0;
  for (const std::string& stop : stops_)
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace sluice::engine
