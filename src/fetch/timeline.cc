#include "fetch/timeline.h"

#include <algorithm>

namespace sluice::fetch {

void Timeline::add(TimelineEntry entry) {
  const std::lock_guard lock(mutex_);
  if (entry.kind != TimelineEntry::Kind::kRead) {
    const auto known = std::find(threads_.begin(), threads_.end(), std::this_thread::get_id());
    entry.thread = static_cast<std::uint32_t>(known - threads_.begin());
    if (known == threads_.end()) threads_.push_back(std::this_thread::get_id());
  }
  entries_.push_back(entry);
}

}  // namespace sluice::fetch
