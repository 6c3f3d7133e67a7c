// Random traces and sizes for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/requests.h"

namespace sluice::experts {

// `experts` of them, five a layer, ascending, with gaps. Equal sizes are one byte each; others 0 to 9 bytes.
class TestSizes final : public ExpertSizes {
 public:
  enum class Kind { kEqual, kDifferent };
  TestSizes(std::uint32_t experts, Kind kind, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint32_t i = 0; i < experts; ++i) {
      sizes_.push_back(kind == Kind::kEqual ? 1 : random() % 10);
      total_ += sizes_.back();
    }
  }
  static ExpertId id(std::uint32_t number) {
    return {static_cast<std::uint16_t>(number / 5), static_cast<std::uint16_t>(number % 5 * 3)};
  }
  static std::uint32_t number(ExpertId id) { return id.layer * 5u + id.index / 3u; }
  ExpertBytes bytes(ExpertId id) const override {
    const Bytes full = sizes_[number(id)];
    return {.full = full, .sm = full, .exp = full / 2, .msb = full, .lsb = full};
  }
  std::uint32_t experts() const { return static_cast<std::uint32_t>(sizes_.size()); }
  Bytes total() const { return total_; }

 private:
  std::vector<Bytes> sizes_;
  Bytes total_ = 0;
};

// Skewed draws with locality; events of 0 to `largest` ids.
inline RequestList random_trace(std::uint32_t experts, std::size_t events, std::uint32_t largest,
                                std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RequestList trace;
  std::vector<ExpertId> ids;
  for (std::size_t e = 0; e < events; ++e) {
    ids.clear();
    const std::uint64_t count = random() % (largest + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t draw = random() % experts, other = random() % experts;
      ids.push_back(TestSizes::id(static_cast<std::uint32_t>(std::min(draw, other))));
    }
    trace.add_event(ids);
  }
  return trace;
}

}  // namespace sluice::experts
