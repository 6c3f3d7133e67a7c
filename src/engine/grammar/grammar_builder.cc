#include "engine/grammar/grammar_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/grammar/grammar_machine.h"

namespace sluice::engine {
namespace {

GrammarEdge byte_edge(std::uint8_t low, std::uint8_t high, GrammarState to) {
  return {.kind = GrammarEdge::Kind::kBytes, .low = low, .high = high, .to = to};
}

GrammarEdge token_edge(tokenizer::TokenId id, GrammarState to) {
  return {.kind = GrammarEdge::Kind::kToken, .to = to, .what = static_cast<std::uint32_t>(id)};
}

GrammarEdge element_edge(const MarkElement& element, GrammarState to) {
  return element.token ? token_edge(*element.token, to) : byte_edge(element.byte, element.byte, to);
}

// How much of a mark has been read when `read` of it and then `next` have been.
std::size_t read_behind(const GrammarMark& mark, std::size_t read, const MarkElement& next) {
  GrammarMark text(mark.begin(), mark.begin() + static_cast<std::ptrdiff_t>(read));
  text.push_back(next);
  for (std::size_t length = std::min(text.size(), mark.size()); length > 0; --length)
    if (std::equal(text.end() - static_cast<std::ptrdiff_t>(length), text.end(), mark.begin())) return length;
  return 0;
}

}  // namespace

GrammarState GrammarBuilder::add_state() {
  if (edges_.size() >= kMostStates)
    throw Error(ErrorKind::kInvalid, "the schema is too large to bind an answer to")
        .in(path_)
        .expected(fmt::format("what {} states of an automaton can hold", kMostStates))
        .found("more")
        .fix("make the schema smaller, or its limits of lengths and counts");
  edges_.emplace_back();
  loop_of_.push_back(Grammar::kNoLoop);
  ends_.push_back(false);
  return static_cast<GrammarState>(edges_.size() - 1);
}

void GrammarBuilder::add_edge(GrammarState from, const GrammarEdge& edge) { edges_[from].push_back(edge); }

GrammarRule GrammarBuilder::add_rule() {
  starts_.emplace_back();
  return static_cast<GrammarRule>(starts_.size() - 1);
}

void GrammarBuilder::define(GrammarRule rule, GrammarPart part) {
  const GrammarState end = add_state();
  join(part.end, end);
  ends_[end] = true;
  starts_[rule] = part.begin;
}

GrammarRule GrammarBuilder::rule_of(GrammarPart part) {
  const GrammarRule rule = add_rule();
  define(rule, part);
  return rule;
}

GrammarPart GrammarBuilder::nothing() {
  const GrammarState only = add_state();
  return {only, only};
}

GrammarPart GrammarBuilder::never() {
  const GrammarState begin = add_state();
  return {begin, add_state()};
}

GrammarPart GrammarBuilder::bytes(std::uint8_t low, std::uint8_t high) {
  const GrammarPart part = never();
  add_edge(part.begin, byte_edge(low, high, part.end));
  return part;
}

GrammarPart GrammarBuilder::text(std::string_view bytes) {
  GrammarPart part = nothing();
  for (const char byte : bytes) {
    const GrammarState next = add_state();
    add_edge(part.end, byte_edge(static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), next));
    part.end = next;
  }
  return part;
}

GrammarPart GrammarBuilder::one_of_texts(std::span<const std::string> texts) {
  const GrammarPart part = never();
  std::map<std::pair<GrammarState, char>, GrammarState> next;
  for (const std::string& text : texts) {
    GrammarState state = part.begin;
    for (const char byte : text) {
      const auto [known, is_new] = next.try_emplace({state, byte}, 0);
      if (is_new) {
        known->second = add_state();
        const auto value = static_cast<std::uint8_t>(byte);
        add_edge(state, byte_edge(value, value, known->second));
      }
      state = known->second;
    }
    join(state, part.end);
  }
  return part;
}

GrammarPart GrammarBuilder::token(tokenizer::TokenId id) {
  const GrammarPart part = never();
  add_edge(part.begin, token_edge(id, part.end));
  return part;
}

GrammarPart GrammarBuilder::mark(const GrammarMark& mark) {
  GrammarPart part = nothing();
  for (const MarkElement& element : mark) {
    const GrammarState next = add_state();
    add_edge(part.end, element_edge(element, next));
    part.end = next;
  }
  return part;
}

GrammarPart GrammarBuilder::in_order(std::span<const GrammarPart> parts) {
  if (parts.empty()) return nothing();
  for (std::size_t i = 1; i < parts.size(); ++i) join(parts[i - 1].end, parts[i].begin);
  return {parts.front().begin, parts.back().end};
}

GrammarPart GrammarBuilder::one_of(std::span<const GrammarPart> parts) {
  const GrammarPart whole = never();
  for (const GrammarPart& part : parts) {
    join(whole.begin, part.begin);
    join(part.end, whole.end);
  }
  return whole;
}

GrammarPart GrammarBuilder::perhaps(GrammarPart part) { return one_of({part, nothing()}); }

GrammarPart GrammarBuilder::repeated(GrammarPart part) {
  const GrammarState head = add_state();
  join(head, part.begin);
  join(part.end, head);
  const GrammarState begin = add_state(), end = add_state();
  join(begin, head);
  join(head, end);
  return {begin, end};
}

GrammarPart GrammarBuilder::once_or_more(GrammarPart part) {
  const GrammarPart whole = never();
  join(whole.begin, part.begin);
  join(part.end, part.begin);
  join(part.end, whole.end);
  return whole;
}

GrammarPart GrammarBuilder::call(GrammarRule rule) {
  const GrammarPart part = never();
  add_edge(part.begin, {.kind = GrammarEdge::Kind::kCall, .to = part.end, .what = rule});
  return part;
}

GrammarPart GrammarBuilder::counted(GrammarRule rule, std::uint32_t min, std::uint32_t max) {
  const GrammarPart part = never();
  const GrammarState head = add_state();
  join(part.begin, head);
  loop_of_[head] = static_cast<std::uint32_t>(loops_.size());
  loops_.push_back({rule, min, max, part.end});
  return part;
}

// States by how much of the mark has been read; the last element leads to `behind`.
std::vector<GrammarState> GrammarBuilder::add_free_text(const GrammarMark& mark, bool specials,
                                                        GrammarState behind) {
  std::vector<GrammarState> read;
  for (std::size_t i = 0; i < mark.size(); ++i) read.push_back(add_state());
  const auto state = [&](std::size_t i) { return i == mark.size() ? behind : read[i]; };
  for (std::size_t i = 0; i < mark.size(); ++i) {
    for (unsigned first = 0; first < 256;) {  // ranges of bytes that lead to the same state
      const auto target = [&](unsigned byte) {
        return state(read_behind(mark, i, {static_cast<std::uint8_t>(byte), {}}));
      };
      unsigned last = first;
      while (last < 255 && target(last + 1) == target(first)) ++last;
      add_edge(read[i],
               byte_edge(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), target(first)));
      first = last + 1;
    }
    std::vector<tokenizer::TokenId> own;
    for (const MarkElement& element : mark) {
      if (!element.token || std::ranges::find(own, *element.token) != own.end()) continue;
      own.push_back(*element.token);
      const std::size_t next = read_behind(mark, i, element);
      // Behind a special token of its own the mark may go on; another one begins it anew.
      if (next > 0) add_edge(read[i], token_edge(*element.token, state(next)));
    }
    if (specials) add_edge(read[i], {.kind = GrammarEdge::Kind::kSpecial, .to = read[0]});
  }
  return read;
}

GrammarPart GrammarBuilder::text_until(const GrammarMark& mark, bool specials) {
  const GrammarState end = add_state();
  return {add_free_text(mark, specials, end).front(), end};
}

GrammarPart GrammarBuilder::text_without(const GrammarMark& mark, bool specials) {
  const GrammarState end = add_state(), never_reached = add_state();
  const std::vector<GrammarState> read = add_free_text(mark, specials, never_reached);
  for (const GrammarState state : read) join(state, end);
  return {read.front(), end};
}

Grammar GrammarBuilder::build(GrammarRule start, NoText no_text) {
  static std::atomic<std::uint64_t> made{0};
  Grammar grammar;
  grammar.id_ = ++made;
  grammar.free_text_ = free_text_;
  grammar.start_ = start;
  for (const auto& rule : starts_)  // what was begun and given up leads nowhere
    grammar.starts_.push_back(rule ? *rule : add_state());
  grammar.loops_ = std::move(loops_);
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    grammar.states_.push_back({.first_edge = static_cast<std::uint32_t>(grammar.edges_.size()),
                               .edges = static_cast<std::uint32_t>(edges_[i].size()),
                               .loop = loop_of_[i],
                               .ends = ends_[i]});
    grammar.edges_.insert(grammar.edges_.end(), edges_[i].begin(), edges_[i].end());
    edges_[i] = {};
  }
  grammar.find_ends();
  grammar.find_depths();
  if (no_text == NoText::kFails && grammar.state(grammar.start()).least_depth == Grammar::kNever)
    throw Error(ErrorKind::kInvalid, "no value fits the schema")
        .in(path_)
        .expected("a schema that some value fits, nested no deeper than 64 levels")
        .found("one that none does, or that calls for itself without an end")
        .fix("let a part that refers to itself be optional");
  grammar.leave_out_what_never_ends();
  check_ways(grammar);
  return grammar;
}

void GrammarBuilder::check_ways(const Grammar& grammar) const {
  GrammarMachine machine(grammar);
  for (GrammarState state = 0; state < grammar.states(); ++state)
    if (grammar.state(state).least_depth != Grammar::kNever && machine.ways_from(state) > kMostWays)
      throw Error(ErrorKind::kInvalid, "the schema lets an answer go on in too many ways at one place")
          .in(path_)
          .expected(fmt::format("at most {} ways", kMostWays))
          .found("more")
          .fix("have fewer alternatives, or fewer optional properties beside each other");
}

}  // namespace sluice::engine
