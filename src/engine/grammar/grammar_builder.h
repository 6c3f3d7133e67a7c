// Puts grammars together from pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"

namespace sluice::engine {

// A piece of an automaton, from `begin` to `end`. It becomes part of one larger piece, or of one rule.
struct GrammarPart {
  GrammarState begin = 0, end = 0;
};

// One element of a mark in free text: a byte, or a special token.
struct MarkElement {
  std::uint8_t byte = 0;
  std::optional<tokenizer::TokenId> token = {};
  bool operator==(const MarkElement&) const = default;
};
using GrammarMark = std::vector<MarkElement>;

// Thread-compatible. Error(kInvalid), in the path that `at` has named last, if there are too many states.
class GrammarBuilder {
 public:
  static constexpr std::size_t kMostStates = 50'000;
  // Ways to go on that a machine follows at once.
  static constexpr std::size_t kMostWays = 256;

  void at(std::string_view path) { path_ = path; }
  const std::string& path() const { return path_; }

  GrammarRule add_rule();  // whose part is defined later
  void define(GrammarRule rule, GrammarPart part);
  GrammarRule rule_of(GrammarPart part);

  GrammarPart nothing();
  GrammarPart never();  // what no text is
  GrammarPart bytes(std::uint8_t low, std::uint8_t high);
  GrammarPart text(std::string_view bytes);
  GrammarPart one_of_texts(std::span<const std::string> texts);  // with common beginnings read once
  GrammarPart token(tokenizer::TokenId id);
  GrammarPart mark(const GrammarMark& mark);
  GrammarPart in_order(std::span<const GrammarPart> parts);
  GrammarPart in_order(std::initializer_list<GrammarPart> parts) { return in_order(std::span(parts)); }
  GrammarPart one_of(std::span<const GrammarPart> parts);
  GrammarPart one_of(std::initializer_list<GrammarPart> parts) { return one_of(std::span(parts)); }
  GrammarPart perhaps(GrammarPart part);
  GrammarPart repeated(GrammarPart part);  // 0 times or more
  GrammarPart once_or_more(GrammarPart part);
  GrammarPart call(GrammarRule rule);
  // `min` to `max` times. REQUIRES: the rule reads something.
  GrammarPart counted(GrammarRule rule, std::uint32_t min, std::uint32_t max);
  // Any text up to a mark and with it; special tokens, too, if `specials`.
  GrammarPart text_until(const GrammarMark& mark, bool specials);
  GrammarPart text_without(const GrammarMark& mark, bool specials);  // that holds no such mark

  void allow_free_text() { free_text_ = true; }
  std::size_t states() const { return edges_.size(); }

  // The whole; the builder is used no more. Error(kInvalid): no text ends the grammar, unless `no_text`
  // allows that, or there are too many ways at once.
  enum class NoText { kFails, kMayBe };
  Grammar build(GrammarRule start, NoText no_text = NoText::kFails);

  // Adds an edge by hand.
  GrammarState add_state();
  void add_edge(GrammarState from, const GrammarEdge& edge);
  void join(GrammarState from, GrammarState to) { add_edge(from, {.to = to}); }

 private:
  std::vector<GrammarState> add_free_text(const GrammarMark& mark, bool specials, GrammarState behind);
  void check_ways(const Grammar& grammar) const;

  std::string path_;
  std::vector<std::vector<GrammarEdge>> edges_;  // edges of states
  std::vector<std::uint32_t> loop_of_;
  std::vector<bool> ends_;
  std::vector<GrammarLoop> loops_;
  std::vector<std::optional<GrammarState>> starts_;
  bool free_text_ = false;
};

}  // namespace sluice::engine
