#include "engine/grammar/pattern.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/grammar/code_points.h"
#include "engine/grammar/pattern_tree.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kMostPatternStates = 10'000, kMostCopies = 64;

class PatternWriter {
 public:
  explicit PatternWriter(GrammarBuilder& builder) : builder_(builder), before_(builder.states()) {}

  GrammarPart whole(const PatternNode& choice) {
    std::vector<GrammarPart> parts;
    for (const PatternNode& alternative : choice.children) parts.push_back(anchored(alternative));
    return builder_.one_of(parts);
  }

 private:
  using Kind = PatternNode::Kind;

  // An alternative of the whole, with what may stand around it.
  GrammarPart anchored(const PatternNode& alternative) {
    std::vector<PatternNode> nodes = alternative.children;
    const bool from_begin = !nodes.empty() && nodes.front().kind == Kind::kBegin;
    if (from_begin) nodes.erase(nodes.begin());
    const bool to_end = !nodes.empty() && nodes.back().kind == Kind::kEnd;
    if (to_end) nodes.pop_back();
    const bool only_group = nodes.size() == 1 && nodes.front().kind == Kind::kOneOf;
    if (only_group && !from_begin && !to_end) return whole(nodes.front());
    std::vector<GrammarPart> parts;
    if (!from_begin) parts.push_back(any());
    for (const PatternNode& node : nodes) parts.push_back(write(node));
    if (!to_end) parts.push_back(any());
    return builder_.in_order(parts);
  }
  GrammarPart any() { return builder_.repeated(string_character(builder_, {{' ', kLastCodePoint}})); }

  GrammarPart write(const PatternNode& node) {
    if (builder_.states() - before_ > kMostPatternStates)
      throw Error(ErrorKind::kInvalid, "a pattern that is too large")
          .in(builder_.path())
          .expected(fmt::format("what {} states of an automaton can hold", kMostPatternStates))
          .found("more");
    switch (node.kind) {
      case Kind::kClass:
        return string_character(builder_, node.ranges);
      case Kind::kInOrder:
        return builder_.in_order(all(node.children));
      case Kind::kOneOf:
        return builder_.one_of(all(node.children));
      case Kind::kRepeat:
        return repeat(node);
      default:
        throw Error(ErrorKind::kInvalid, "a pattern that answers cannot be bound to")
            .in(builder_.path())
            .expected("^ and $ at the ends of the pattern's alternatives alone")
            .found("an anchor elsewhere");
    }
  }
  std::vector<GrammarPart> all(const std::vector<PatternNode>& nodes) {
    std::vector<GrammarPart> parts;
    for (const PatternNode& node : nodes) parts.push_back(write(node));
    return parts;
  }

  GrammarPart repeat(const PatternNode& node) {
    const PatternNode& one = node.children.front();
    if (node.max == 0) return builder_.nothing();
    if (node.max == 1) return node.min == 1 ? write(one) : builder_.perhaps(write(one));
    const bool endless = node.max == GrammarLoop::kNoLimit;
    if (endless && (node.min == 0 || one.may_be_empty())) return builder_.repeated(write(one));
    if (endless && node.min == 1) return builder_.once_or_more(write(one));
    if (!one.may_be_empty()) return builder_.counted(builder_.rule_of(write(one)), node.min, node.max);
    if (node.max > kMostCopies)
      throw Error(ErrorKind::kInvalid, "a pattern that repeats what may be empty too often")
          .in(builder_.path())
          .expected(fmt::format("at most {} times", kMostCopies))
          .found(std::to_string(node.max));
    std::vector<GrammarPart> copies;
    for (std::uint32_t i = 0; i < node.max; ++i) copies.push_back(builder_.perhaps(write(one)));
    return builder_.in_order(copies);
  }

  GrammarBuilder& builder_;
  const std::size_t before_;
};

}  // namespace

GrammarPart pattern_part(GrammarBuilder& builder, std::string_view pattern) {
  std::optional<std::vector<std::uint32_t>> text = code_points(pattern);
  if (!text) throw Error(ErrorKind::kInvalid, "a pattern that is not UTF-8").in(builder.path());
  const PatternNode whole = read_pattern(builder, std::move(*text));
  return PatternWriter(builder).whole(whole);
}

}  // namespace sluice::engine
