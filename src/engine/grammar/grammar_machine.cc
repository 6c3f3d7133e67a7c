#include "engine/grammar/grammar_machine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/grammar/grammar_builder.h"

namespace sluice::engine {
namespace {

constexpr GrammarMachine::Set kUnknown = UINT32_MAX;

// A count that allows the same of the next `reach` repetitions, and fewer, as `count` does.
std::uint32_t count_alike(const GrammarLoop& loop, std::uint32_t count, std::uint32_t reach) {
  const std::uint64_t far = std::uint64_t{count} + reach;
  if (far < loop.min) return 0;
  const bool far_from_max = loop.max == GrammarLoop::kNoLimit || far < loop.max;
  return count >= loop.min && far_from_max ? loop.min : count;
}

}  // namespace

GrammarMachine::GrammarMachine(const Grammar& grammar) : grammar_(grammar) {
  nodes_.push_back({});
  sets_.emplace_back();
  known_sets_[{{}, false}] = kDead;
}

std::uint32_t GrammarMachine::push(GrammarState state, std::uint32_t count, std::uint32_t below) {
  const auto [known, is_new] =
      known_nodes_.try_emplace({state, count, below}, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({state, count, below, nodes_[below].depth + 1});
  return known->second;
}

void GrammarMachine::begin_closure() {
  seen_.clear();
  reading_.clear();
  ends_ = false;
}

void GrammarMachine::add(const Way& way) {
  const Grammar::State& state = grammar_.state(way.state);
  if (state.least_depth == Grammar::kNever) return;
  if (nodes_[way.stack].depth + state.least_depth > Grammar::kMostDepth) return;
  if (std::ranges::find(seen_, way) == seen_.end()) seen_.push_back(way);
}

void GrammarMachine::follow(const Way& way) {
  const Grammar::State& state = grammar_.state(way.state);
  if (state.ends) {
    if (way.stack == 0) {
      ends_ = true;
    } else {
      const Node& node = nodes_[way.stack];
      add({node.state, node.count, node.below});
    }
  }
  if (state.loop != Grammar::kNoLoop) {
    const GrammarLoop& loop = grammar_.loop(state.loop);
    if (way.count >= loop.min) add({loop.exit, 0, way.stack});
    if (way.count < loop.max) {
      const std::uint32_t most = loop.max == GrammarLoop::kNoLimit ? loop.min : loop.max;
      add({grammar_.start_of(loop.rule), 0, push(way.state, std::min(way.count + 1, most), way.stack)});
    }
  }
  bool reads = false;
  for (const GrammarEdge& edge : grammar_.edges_of(way.state)) {
    if (edge.kind == GrammarEdge::Kind::kNothing) {
      add({edge.to, 0, way.stack});
    } else if (edge.kind == GrammarEdge::Kind::kCall) {
      // What is called last takes the place of its caller.
      const bool last = grammar_.state(edge.to).only_ends;
      add({grammar_.start_of(edge.what), 0, last ? way.stack : push(edge.to, 0, way.stack)});
    } else {
      reads = true;
    }
  }
  if (reads) reading_.push_back(way);
}

GrammarMachine::Set GrammarMachine::end_closure() {
  for (std::size_t i = 0; i < seen_.size(); ++i) follow(Way(seen_[i]));
  if (reading_.size() > GrammarBuilder::kMostWays) return kDead;
  std::ranges::sort(reading_);
  const auto [known, is_new] = known_sets_.try_emplace({reading_, ends_}, static_cast<Set>(sets_.size()));
  if (!is_new) return known->second;
  if (sets_.size() >= kMostSets) {
    known_sets_.erase(known);
    return kDead;
  }
  sets_.push_back({.ways = reading_, .ends = ends_});
  return known->second;
}

GrammarMachine::Set GrammarMachine::start() {
  begin_closure();
  add({grammar_.start(), 0, 0});
  return end_closure();
}

GrammarMachine::Set GrammarMachine::step(Set set, std::uint8_t byte) {
  if (!sets_[set].next) {
    sets_[set].next = std::make_unique<std::array<Set, 256>>();
    sets_[set].next->fill(kUnknown);
  }
  if (const Set known = (*sets_[set].next)[byte]; known != kUnknown) return known;
  begin_closure();
  for (const Way& way : sets_[set].ways)
    for (const GrammarEdge& edge : grammar_.edges_of(way.state))
      if (edge.kind == GrammarEdge::Kind::kBytes && edge.low <= byte && byte <= edge.high)
        add({edge.to, 0, way.stack});
  const Set next = end_closure();
  (*sets_[set].next)[byte] = next;
  return next;
}

GrammarMachine::Set GrammarMachine::step_token(Set set, tokenizer::TokenId special) {
  begin_closure();
  for (const Way& way : sets_[set].ways) {
    const std::span<const GrammarEdge> edges = grammar_.edges_of(way.state);
    const bool named = std::ranges::any_of(edges, [&](const GrammarEdge& edge) {
      return edge.kind == GrammarEdge::Kind::kToken && edge.what == static_cast<std::uint32_t>(special);
    });
    for (const GrammarEdge& edge : edges) {
      const bool fits =
          named ? edge.kind == GrammarEdge::Kind::kToken && edge.what == static_cast<std::uint32_t>(special)
                : edge.kind == GrammarEdge::Kind::kSpecial;
      if (fits) add({edge.to, 0, way.stack});
    }
  }
  return end_closure();
}

std::vector<tokenizer::TokenId> GrammarMachine::tokens(Set set) const {
  std::vector<tokenizer::TokenId> ids;
  for (const Way& way : sets_[set].ways)
    for (const GrammarEdge& edge : grammar_.edges_of(way.state))
      if (edge.kind == GrammarEdge::Kind::kToken) ids.push_back(static_cast<tokenizer::TokenId>(edge.what));
  return ids;
}

bool GrammarMachine::any_special(Set set) const {
  return std::ranges::any_of(sets_[set].ways, [&](const Way& way) {
    return std::ranges::any_of(grammar_.edges_of(way.state), [](const GrammarEdge& edge) {
      return edge.kind == GrammarEdge::Kind::kSpecial;
    });
  });
}

// Words: whether it may end; then each way: state, count, depth, and the stack from its top: state, count.
GrammarPlace GrammarMachine::save(Set set, std::uint32_t token_bytes, bool alike) const {
  const auto count_of = [&](GrammarState state, std::uint32_t count) {
    const std::uint32_t loop = grammar_.state(state).loop;
    return alike && loop != Grammar::kNoLoop ? count_alike(grammar_.loop(loop), count, token_bytes) : count;
  };
  GrammarPlace place;
  place.words.push_back(sets_[set].ends ? 1 : 0);
  for (const Way& way : sets_[set].ways) {
    place.words.push_back(way.state);
    place.words.push_back(count_of(way.state, way.count));
    place.words.push_back(nodes_[way.stack].depth);
    for (std::uint32_t at = way.stack; at != 0; at = nodes_[at].below) {
      place.words.push_back(nodes_[at].state);
      place.words.push_back(count_of(nodes_[at].state, nodes_[at].count));
    }
  }
  return place;
}

GrammarPlace GrammarMachine::save(Set set) const { return save(set, 0, false); }

GrammarPlace GrammarMachine::save_alike(Set set, std::uint32_t token_bytes) const {
  return save(set, token_bytes, true);
}

GrammarMachine::Set GrammarMachine::load(const GrammarPlace& place) {
  begin_closure();
  const std::vector<std::uint32_t>& words = place.words;
  for (std::size_t i = 1; i < words.size();) {
    Way way{words[i], words[i + 1], 0};
    const std::size_t depth = words[i + 2];
    i += 3;
    for (std::size_t below = depth; below > 0; --below)  // the lowest stands last
      way.stack = push(words[i + 2 * below - 2], words[i + 2 * below - 1], way.stack);
    i += 2 * depth;
    reading_.push_back(way);
  }
  ends_ = !words.empty() && words.front() != 0;
  return end_closure();
}

std::size_t GrammarMachine::ways_from(GrammarState state) {
  begin_closure();
  add({state, 0, 0});
  for (std::size_t i = 0; i < seen_.size(); ++i) follow(Way(seen_[i]));
  return reading_.size();
}

}  // namespace sluice::engine
