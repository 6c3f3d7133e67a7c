// A regular expression as a tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/grammar/code_points.h"
#include "engine/grammar/grammar_builder.h"

namespace sluice::engine {

struct PatternNode {
  enum class Kind : std::uint8_t { kClass, kInOrder, kOneOf, kRepeat, kBegin, kEnd };
  Kind kind = Kind::kInOrder;
  CodeRanges ranges = {};
  std::vector<PatternNode> children = {};
  std::uint32_t min = 0, max = GrammarLoop::kNoLimit;

  bool may_be_empty() const {
    const auto empty = [](const PatternNode& node) { return node.may_be_empty(); };
    switch (kind) {
      case Kind::kClass:
        return false;
      case Kind::kInOrder:
        return std::ranges::all_of(children, empty);
      case Kind::kOneOf:
        return std::ranges::any_of(children, empty);
      case Kind::kRepeat:
        return min == 0 || children.front().may_be_empty();
      default:
        return true;
    }
  }
};

// The alternatives of the whole. Error(kInvalid) in the builder's path: bad syntax; what is not supported.
PatternNode read_pattern(const GrammarBuilder& builder, std::vector<std::uint32_t> text);

}  // namespace sluice::engine
