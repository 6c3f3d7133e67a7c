// Runs a grammar. Where an answer stands in it is a set of ways to go on, each a state with a stack;
// steps from set to set are remembered, so that walking a whole vocabulary is a walk over tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/grammar/grammar.h"

namespace sluice::engine {

// A set of ways by itself: it needs no machine. Equal sets of one grammar have equal words.
struct GrammarPlace {
  std::vector<std::uint32_t> words;
  bool operator==(const GrammarPlace&) const = default;
};

// Thread-compatible. The grammar must outlive it.
class GrammarMachine {
 public:
  using Set = std::uint32_t;
  static constexpr Set kDead = 0;  // no way goes on
  static constexpr std::size_t kMostSets = 4096;

  explicit GrammarMachine(const Grammar& grammar);

  Set start();
  Set load(const GrammarPlace& place);
  GrammarPlace save(Set set) const;
  // A place that allows the same next token as this one, of at most this many bytes: counts that are far
  // from their limits look alike.
  GrammarPlace save_alike(Set set, std::uint32_t token_bytes) const;

  // kDead also where more ways than GrammarBuilder::kMostWays would be left, or more sets than kMostSets
  // made.
  Set step(Set set, std::uint8_t byte);
  Set step_token(Set set, tokenizer::TokenId special);
  bool may_end(Set set) const { return sets_[set].ends; }
  bool goes_on(Set set) const { return !sets_[set].ways.empty(); }
  std::vector<tokenizer::TokenId> tokens(Set set) const;  // special ones that are named
  bool any_special(Set set) const;                        // … or all of them

  std::size_t ways_from(GrammarState state);

 private:
  struct Way {
    GrammarState state = 0;
    std::uint32_t count = 0;  // repetitions of a loop
    std::uint32_t stack = 0;  // its top node; 0: empty
    auto operator<=>(const Way&) const = default;
  };
  struct Node {
    GrammarState state;   // behind the call
    std::uint32_t count;  // that state's count
    std::uint32_t below;
    std::uint32_t depth;
  };
  struct Ways {
    std::vector<Way> ways;  // sorted; those that read something
    bool ends = false;
    std::unique_ptr<std::array<Set, 256>> next = {};
  };

  std::uint32_t push(GrammarState state, std::uint32_t count, std::uint32_t below);
  void begin_closure();
  void add(const Way& way);
  void follow(const Way& way);
  Set end_closure();
  GrammarPlace save(Set set, std::uint32_t token_bytes, bool alike) const;

  const Grammar& grammar_;
  std::vector<Node> nodes_;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> known_nodes_;
  std::vector<Ways> sets_;
  std::map<std::pair<std::vector<Way>, bool>, Set> known_sets_;
  // The closure that is being made.
  std::vector<Way> seen_;
  std::vector<Way> reading_;
  bool ends_ = false;
};

}  // namespace sluice::engine
