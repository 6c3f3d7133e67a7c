#include "lab/replay/synthetic_routing.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace sluice::lab {

RoutingCounter::RoutingCounter(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k)
    : layers_(layers), experts_(experts), top_k_(top_k) {
  begin_sequence();
}

void RoutingCounter::begin_sequence() {
  if (sequence_tokens_ > 0) {
    sequences_ += 1;
    for (const std::vector<std::uint32_t>& of_layer : used_)
      sums_.f_1 += static_cast<double>(std::ranges::max(of_layer)) / sequence_tokens_;
  }
  sequence_tokens_ = 0;
  used_.assign(layers_, std::vector<std::uint32_t>(experts_));
  before_.assign(layers_, {});
}

void RoutingCounter::add(std::uint32_t layer, std::span<const std::uint16_t> experts, double mass) {
  if (layer == 0) {
    tokens_ += 1;
    sequence_tokens_ += 1;
  }
  sums_.mass += mass;
  std::vector<std::uint16_t>& before = before_[layer];
  pairs_ += before.empty() ? 0 : 1;
  for (const std::uint16_t expert : experts) {
    used_[layer][expert] += 1;
    sums_.overlap += std::ranges::find(before, expert) != before.end() ? 1 : 0;
  }
  before.assign(experts.begin(), experts.end());
}

RoutingFacts RoutingCounter::facts() {
  begin_sequence();
  const auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0; };
  return {.f_1 = mean(sums_.f_1, sequences_ * layers_),
          .mass = mean(sums_.mass, tokens_ * layers_),
          .overlap = mean(sums_.overlap, pairs_ * top_k_)};
}

RoutingFacts facts_of(trace::RoutingTrace& trace) {
  const trace::TraceHeader& header = trace.header();
  RoutingCounter counter(header.layers, header.experts, header.top_k);
  trace::TraceEvent event;
  std::uint32_t sequence = 0;
  std::vector<std::uint16_t> ids;
  // A step has its tokens layer by layer, and facts need them token by token: each layer counts separately.
  while (trace.next(event)) {
    if (event.layer == 0 && !event.sequences.empty() && event.sequences.front().sequence != sequence) {
      counter.begin_sequence();
      sequence = event.sequences.front().sequence;
    }
    for (std::uint32_t t = 0; t < event.tokens; ++t) {
      ids.clear();
      double mass = 0;
      for (std::uint32_t c = event.begin[t]; c < event.begin[t + 1]; ++c) {
        ids.push_back(event.choices[c].expert);
        mass += event.choices[c].weight;
      }
      counter.add(event.layer, ids, mass);
    }
  }
  return counter.facts();
}

double Normal::operator()() {
  if (has_second_) {
    has_second_ = false;
    return second_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform())), angle = 2 * std::numbers::pi * uniform();
  second_ = radius * std::sin(angle);
  has_second_ = true;
  return radius * std::cos(angle);
}

SyntheticTokens::SyntheticTokens(const SyntheticRouting& settings)
    : settings_(settings),
      normal_(settings.seed),
      rank_(settings.layers, std::vector<std::uint32_t>(settings.experts)),
      x_(settings.layers, std::vector<double>(settings.experts)),
      z_(x_),
      ids_(settings.layers, std::vector<std::uint16_t>(settings.top_k)),
      most_(settings.layers),
      sum_(settings.layers),
      order_(settings.experts) {
  SLUICE_CHECK(settings.layers > 0 && settings.prompts > 0 && settings.tokens > 0);
  SLUICE_CHECK(settings.top_k > 0 && settings.top_k <= settings.experts);
  for (std::vector<std::uint32_t>& of_layer : rank_) {
    std::iota(of_layer.begin(), of_layer.end(), 0u);
    for (std::uint32_t e = settings.experts; e > 1; --e)
      std::swap(of_layer[e - 1], of_layer[normal_.below(e)]);
  }
}

void SyntheticTokens::begin_prompt() {
  prompt_ += 1;
  token_ = 0;
  for (std::vector<std::uint32_t>& of_layer : rank_)
    for (std::uint32_t e = 0; e < settings_.experts; ++e)
      if (normal_.uniform() < settings_.d) std::swap(of_layer[e], of_layer[normal_.below(settings_.experts)]);
}

bool SyntheticTokens::next() {
  if (prompt_ == 0 || token_ == settings_.tokens) {
    if (prompt_ == settings_.prompts) return false;
    begin_prompt();
  }
  const bool first = token_++ == 0;
  const double renewal = settings_.sigma * std::sqrt(1 - settings_.phi * settings_.phi);
  for (std::uint32_t layer = 0; layer < settings_.layers; ++layer) {
    std::vector<double>& z = z_[layer];
    double most = -1e300;
    for (std::uint32_t e = 0; e < settings_.experts; ++e) {
      double& now = x_[layer][e];
      now = first ? settings_.sigma * normal_() : settings_.phi * now + renewal * normal_();
      z[e] = now - settings_.a * std::log(static_cast<double>(rank_[layer][e] + 1));
      most = std::max(most, z[e]);
    }
    std::iota(order_.begin(), order_.end(), 0u);
    std::partial_sort(order_.begin(), order_.begin() + settings_.top_k, order_.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
    most_[layer] = most;
    sum_[layer] = 0;
    for (const double value : z) sum_[layer] += std::exp(value - most);
    for (std::uint32_t i = 0; i < settings_.top_k; ++i)
      ids_[layer][i] = static_cast<std::uint16_t>(order_[i]);
    std::ranges::sort(ids_[layer]);
  }
  return true;
}

double SyntheticTokens::score(std::uint32_t layer, std::uint16_t expert) const {
  return std::exp(z_[layer][expert] - most_[layer]) / sum_[layer];
}

SyntheticTrace::SyntheticTrace(const SyntheticRouting& settings, std::size_t prefill)
    : RoutingTrace("synthetic routing"),
      settings_(settings),
      prefill_(std::min(prefill, settings.tokens)),
      tokens_(settings),
      layers_(settings.layers) {
  header_.format = "synthetic";
  header_.layers = settings.layers;
  header_.experts = settings.experts;
  header_.top_k = settings.top_k;
  header_.logits = true;
}

bool SyntheticTrace::gather() {
  // Tokens of the prompt that have been handed out.
  const std::uint32_t in_prompt = mark_.position + mark_.tokens;
  const bool begins = in_prompt == 0 || in_prompt == settings_.tokens;
  mark_ = {.sequence = mark_.sequence + (in_prompt == settings_.tokens ? 1 : 0),
           .tokens = static_cast<std::uint32_t>(begins && prefill_ > 0 ? prefill_ : 1),
           .position = begins ? 0 : in_prompt};
  for (Layer& layer : layers_) {
    layer.logits.clear();
    layer.choices.clear();
    layer.begin.assign(1, 0);
  }
  for (std::uint32_t t = 0; t < mark_.tokens; ++t) {
    if (!tokens_.next()) return false;
    for (std::uint32_t l = 0; l < settings_.layers; ++l) {
      Layer& layer = layers_[l];
      for (const double z : tokens_.logits(l)) layer.logits.push_back(static_cast<float>(z));
      for (const std::uint16_t expert : tokens_.chosen(l))
        layer.choices.push_back({.expert = expert, .weight = static_cast<float>(tokens_.score(l, expert))});
      layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
    }
  }
  return true;
}

bool SyntheticTrace::next(trace::TraceEvent& event) {
  if (layer_ == 0 && !gather()) return false;
  const Layer& layer = layers_[layer_];
  event = {
      .step = step_,
      .layer = layer_,
      .phase = mark_.position == 0 && prefill_ > 0 ? trace::TracePhase::kPrefill : trace::TracePhase::kDecode,
      .tokens = mark_.tokens,
      .choices = layer.choices,
      .begin = layer.begin,
      .logits = layer.logits,
      .sequences = {&mark_, 1},
      .token_ids = {}};
  if (++layer_ == settings_.layers) {
    layer_ = 0;
    ++step_;
  }
  return true;
}

}  // namespace sluice::lab
