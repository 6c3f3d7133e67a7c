#include "engine/grammar/grammar.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

// Who leads to a state, for walks from the ends back.
struct Incoming {
  GrammarState from;
  GrammarRule rule;  // called on the way, or kNoRule
};
constexpr GrammarRule kNoRule = UINT32_MAX;

struct Caller {
  GrammarState from, behind;  // the call
};

}  // namespace

std::size_t Grammar::bytes() const {
  return states_.capacity() * sizeof(State) + edges_.capacity() * sizeof(GrammarEdge) +
         loops_.capacity() * sizeof(GrammarLoop) + starts_.capacity() * sizeof(GrammarState) + sizeof(*this);
}

// What is called before such a state is called last: it takes the place of its caller on the stack.
void Grammar::find_ends() {
  for (State& state : states_) state.only_ends = state.ends;
  bool found = true;
  for (int round = 0; found && round < 8; ++round) {  // pieces are put together from few steps
    found = false;
    for (State& state : states_) {
      const std::span<const GrammarEdge> edges = std::span(edges_).subspan(state.first_edge, state.edges);
      if (state.only_ends || state.loop != kNoLoop || edges.empty()) continue;
      state.only_ends = std::ranges::all_of(edges, [&](const GrammarEdge& edge) {
        return edge.kind == GrammarEdge::Kind::kNothing && states_[edge.to].only_ends;
      });
      found = found || state.only_ends;
    }
  }
}

// Level by level: what needs no stack, then what needs one call, and so on. What is never reached has no
// end.
void Grammar::find_depths() {
  std::vector<std::vector<Incoming>> incoming(states_.size());
  std::vector<std::vector<Caller>> tail_callers(starts_.size()), callers(starts_.size());
  for (GrammarState from = 0; from < states_.size(); ++from) {
    for (const GrammarEdge& edge : edges_of(from)) {
      const bool calls = edge.kind == GrammarEdge::Kind::kCall;
      incoming[edge.to].push_back({from, calls ? edge.what : kNoRule});
      if (calls) (states_[edge.to].only_ends ? tail_callers : callers)[edge.what].push_back({from, edge.to});
    }
    if (states_[from].loop == kNoLoop) continue;
    const GrammarLoop& loop = loops_[states_[from].loop];
    incoming[loop.exit].push_back({from, loop.min == 0 ? kNoRule : loop.rule});
    if (loop.min > 0) callers[loop.rule].push_back({from, loop.exit});
  }
  std::vector<std::vector<GrammarRule>> rules_at(states_.size());
  for (GrammarRule rule = 0; rule < starts_.size(); ++rule) rules_at[starts_[rule]].push_back(rule);

  std::vector<GrammarState> found;
  std::vector<GrammarRule> ended;  // rules found on this level
  for (GrammarState s = 0; s < states_.size(); ++s)
    if (states_[s].ends) found.push_back(s);
  for (std::uint8_t level = 0; level < kMostDepth; ++level) {
    const auto mark = [&](GrammarState state) {
      if (states_[state].least_depth != kNever) return;
      states_[state].least_depth = level;
      found.push_back(state);
    };
    for (const GrammarState s : std::exchange(found, {})) mark(s);
    for (const GrammarRule rule : std::exchange(ended, {}))
      for (const Caller& caller : callers[rule])
        if (states_[caller.behind].least_depth != kNever) mark(caller.from);
    while (!found.empty()) {
      const GrammarState at = found.back();
      found.pop_back();
      for (const Incoming& one : incoming[at]) {
        const std::uint8_t called = one.rule == kNoRule ? 0 : states_[starts_[one.rule]].least_depth;
        const bool tail = one.rule != kNoRule && states_[at].only_ends && states_[one.from].loop == kNoLoop;
        if (one.rule == kNoRule || (called != kNever && (tail ? called <= level : called < level)))
          mark(one.from);
      }
      for (const GrammarRule rule : rules_at[at]) {
        ended.push_back(rule);
        for (const Caller& caller : tail_callers[rule]) mark(caller.from);
      }
    }
    if (ended.empty()) return;
  }
}

void Grammar::leave_out_what_never_ends() {
  const auto never = [&](GrammarState state) { return states_[state].least_depth == kNever; };
  for (State& state : states_) {
    const auto begin = edges_.begin() + state.first_edge, end = begin + state.edges;
    const auto kept = std::remove_if(begin, end, [&](const GrammarEdge& edge) {
      return never(edge.to) || (edge.kind == GrammarEdge::Kind::kCall && never(starts_[edge.what]));
    });
    state.edges = static_cast<std::uint32_t>(kept - begin);
  }
  for (GrammarLoop& loop : loops_)
    if (never(starts_[loop.rule])) loop.max = 0;  // min is 0, or nothing leads to the loop
}

}  // namespace sluice::engine
