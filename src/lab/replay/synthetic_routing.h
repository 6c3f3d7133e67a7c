// Synthetic routing with all router logits, for replays where no recording has them. z = b + x: b =
// -a·ln(rank) by layer, ranks exchanged for each prompt with probability d; x is AR(1) over the tokens of a
// prompt with φ and std σ. SPEC §6.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "trace/routing_trace.h"

namespace sluice::lab {

struct SyntheticRouting {
  std::uint32_t layers = 1, experts = 1, top_k = 1;
  std::size_t prompts = 1, tokens = 1;  // tokens of each prompt, with what follows it
  double a = 1, d = .1, phi = .7, sigma = 1;
  std::uint64_t seed = 1;
};

// Statistics of a routing, recorded or synthetic.
struct RoutingFacts {
  double f_1 = 0;      // share of the tokens of a sequence that choose a layer's most used expert, mean
  double mass = 0;     // share of the chosen experts in the scores of all experts, mean
  double overlap = 0;  // share of a token's experts that the token before also chose, mean
};

// Gathers the facts. Thread-compatible.
class RoutingCounter {
 public:
  RoutingCounter(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k);
  void begin_sequence();
  // Adds one layer of the next token, layers in order: its experts and the sum of their scores.
  void add(std::uint32_t layer, std::span<const std::uint16_t> experts, double mass);
  RoutingFacts facts();  // over all tokens so far; ends the sequence

 private:
  std::uint32_t layers_, experts_, top_k_;
  std::vector<std::vector<std::uint32_t>> used_;    // by layer and expert, of the running sequence
  std::vector<std::vector<std::uint16_t>> before_;  // by layer: experts of the token before
  double tokens_ = 0, sequence_tokens_ = 0, sequences_ = 0, pairs_ = 0;
  RoutingFacts sums_;
};

// Facts of a trace whose choices have scores as weights and whose tokens are marked with their sequences.
// Reads the trace to its end. Errors as RoutingTrace::next.
RoutingFacts facts_of(trace::RoutingTrace& trace);

// Standard normal numbers, equal with every standard library (Box and Muller).
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : random_(seed) {}
  double operator()();
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }

 private:
  std::mt19937_64 random_;
  double second_ = 0;
  bool has_second_ = false;
};

// Token by token. Thread-compatible.
class SyntheticTokens {
 public:
  explicit SyntheticTokens(const SyntheticRouting& settings);

  // Moves on to the next token; false behind the last.
  bool next();
  bool begins_prompt() const { return token_ == 1; }  // whether the current token does
  // For the current token, by layer.
  std::span<const double> logits(std::uint32_t layer) const { return z_[layer]; }           // (N)
  std::span<const std::uint16_t> chosen(std::uint32_t layer) const { return ids_[layer]; }  // (k), ascending
  double score(std::uint32_t layer, std::uint16_t expert) const;  // softmax over all N

 private:
  void begin_prompt();

  SyntheticRouting settings_;
  Normal normal_;
  std::size_t prompt_ = 0, token_ = 0;  // 1-based: handed out so far
  std::vector<std::vector<std::uint32_t>> rank_;
  std::vector<std::vector<double>> x_, z_;
  std::vector<std::vector<std::uint16_t>> ids_;
  std::vector<double> most_, sum_;  // by layer: largest logit, Σ exp(z - most)
  std::vector<std::uint32_t> order_;
};

// The same as a trace with logits: `prefill` tokens of each prompt are one prefill step, the others decode
// steps. Weights of choices are scores.
class SyntheticTrace : public trace::RoutingTrace {
 public:
  SyntheticTrace(const SyntheticRouting& settings, std::size_t prefill);
  bool next(trace::TraceEvent& event) override;

 private:
  struct Layer {
    std::vector<float> logits;
    std::vector<experts::Choice> choices;
    std::vector<std::uint32_t> begin;
  };
  bool gather();  // the tokens of the next step

  SyntheticRouting settings_;
  std::size_t prefill_;
  SyntheticTokens tokens_;
  std::vector<Layer> layers_;
  trace::SequenceMark mark_;
  std::uint64_t step_ = 0;
  std::uint32_t layer_ = 0;
};

}  // namespace sluice::lab
