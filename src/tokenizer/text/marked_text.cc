#include "tokenizer/text/marked_text.h"

#include <algorithm>

namespace sluice::tokenizer {

namespace {

// The first range that ends behind `at`.
std::span<const ByteRange>::iterator first_behind(std::span<const ByteRange> ranges, std::size_t at) {
  return std::lower_bound(
      ranges.begin(), ranges.end(), at,
      [](const ByteRange& candidate, std::size_t place) { return candidate.end <= place; });
}

}  // namespace

std::vector<ByteRange> ranges_within(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end) {
  std::vector<ByteRange> within;
  for (auto range = first_behind(ranges, begin); range != ranges.end() && range->begin < end; ++range)
    within.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
  return within;
}

MarkedText::MarkedText(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::kRequest) mark(0, bytes_.size());
}

void MarkedText::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!request_.empty() && request_.back().end == begin) {
    request_.back().end = end;
  } else {
    request_.push_back({begin, end});
  }
}

void MarkedText::append(std::string_view bytes, Origin origin) {
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (origin == Origin::kRequest) mark(begin, bytes_.size());
}

void MarkedText::append(const MarkedText& other, std::size_t begin, std::size_t end) {
  const std::size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto range = first_behind(other.request_, begin);
       range != std::span<const ByteRange>(other.request_).end() && range->begin < end; ++range)
    mark(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  MarkedText result;
  result.append(*this, begin, end);
  return result;
}

}  // namespace sluice::tokenizer
