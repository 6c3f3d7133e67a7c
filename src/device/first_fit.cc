#include "device/first_fit.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"

namespace sluice::device {

FirstFit::FirstFit(Bytes size) : free_bytes_(round_down(size, kAlignment)) {
  if (free_bytes_ > 0) free_[0] = free_bytes_;
}

std::optional<Bytes> FirstFit::take(Bytes bytes) {
  SLUICE_CHECK(bytes > 0);
  if (bytes > free_bytes_) return std::nullopt;
  const Bytes size = cost(bytes);
  const auto fit = std::ranges::find_if(free_, [&](const auto& range) { return range.second >= size; });
  if (fit == free_.end()) return std::nullopt;
  const Bytes offset = fit->first, left = fit->second - size;
  free_.erase(fit);
  if (left > 0) free_[offset + size] = left;
  free_bytes_ -= size;
  return offset;
}

void FirstFit::give(Bytes offset, Bytes bytes) {
  const Bytes size = cost(bytes);
  Bytes begin = offset, end = offset + size;
  auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    SLUICE_CHECK(before->first + before->second <= begin, std::to_string(offset) + " is free already");
    if (before->first + before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  if (after != free_.end()) {
    SLUICE_CHECK(end <= after->first, std::to_string(offset) + " is free already");
    if (after->first == end) {
      end += after->second;
      free_.erase(after);
    }
  }
  free_[begin] = end - begin;
  free_bytes_ += size;
}

Bytes FirstFit::largest_free() const {
  Bytes largest = 0;
  for (const auto& [offset, size] : free_) largest = std::max(largest, size);
  return largest;
}

}  // namespace sluice::device
