// What an answer may be, as an automaton of bytes with a stack. GrammarBuilder makes it; GrammarMachine
// runs it.
//
// A grammar is a list of rules, and a rule an automaton whose edges read a byte or a special token, read
// nothing, or call another rule: what follows the call is put on the stack, and taken from it where the
// called rule ends. Counted repetitions are states of their own, with a count beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::engine {

using GrammarState = std::uint32_t;
using GrammarRule = std::uint32_t;

struct GrammarEdge {
  enum class Kind : std::uint8_t {
    kBytes,    // from `low` to `high`
    kToken,    // the special token `what`
    kSpecial,  // any special token, but those that end answers
    kNothing,
    kCall  // a call of the rule `what`
  };
  Kind kind = Kind::kNothing;
  std::uint8_t low = 0, high = 0;
  GrammarState to = 0;
  std::uint32_t what = 0;
};

// A state that calls a rule again and again.
struct GrammarLoop {
  static constexpr std::uint32_t kNoLimit = UINT32_MAX;
  GrammarRule rule = 0;
  std::uint32_t min = 0, max = kNoLimit;
  GrammarState exit = 0;
};

// Immutable; many threads may read it.
class Grammar {
 public:
  // The most frames of a stack. What would need more is not begun, so that nothing begun is without an
  // end.
  static constexpr std::uint8_t kMostDepth = 64, kNever = 255;
  static constexpr std::uint32_t kNoLoop = UINT32_MAX;

  struct State {
    std::uint32_t first_edge = 0, edges = 0;
    std::uint32_t loop = kNoLoop;       // among loops()
    std::uint8_t least_depth = kNever;  // calls that must be open at once until the rule has ended
    bool ends = false;                  // the rule ends here
    bool only_ends = false;             // … or behind steps that read nothing
  };

  std::span<const GrammarEdge> edges_of(GrammarState state) const {
    return std::span(edges_).subspan(states_[state].first_edge, states_[state].edges);
  }
  const State& state(GrammarState state) const { return states_[state]; }
  const GrammarLoop& loop(std::uint32_t loop) const { return loops_[loop]; }
  GrammarState start_of(GrammarRule rule) const { return starts_[rule]; }
  GrammarState start() const { return starts_[start_]; }
  std::size_t states() const { return states_.size(); }
  std::uint64_t id() const { return id_; }  // no other grammar of this process has it
  // Free text may stand outside of what is bound, and texts that end an answer count there.
  bool has_free_text() const { return free_text_; }
  std::size_t bytes() const;  // the memory that it takes

 private:
  friend class GrammarBuilder;
  void find_ends();
  void find_depths();
  void leave_out_what_never_ends();

  std::vector<State> states_;
  std::vector<GrammarEdge> edges_;
  std::vector<GrammarLoop> loops_;
  std::vector<GrammarState> starts_;  // where rules start
  GrammarRule start_ = 0;
  std::uint64_t id_ = 0;
  bool free_text_ = false;
};

}  // namespace sluice::engine
