#include "lab/reproduce/token_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>

#include "base/error.h"

namespace sluice::lab {
namespace {

// Standard normal numbers, the same with every library (Box and Muller).
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : random_(seed) {}
  double operator()() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform())), angle = 2 * std::numbers::pi * uniform();
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }

 private:
  std::mt19937_64 random_;
  double second_ = 0;
  bool has_second_ = false;
};

}  // namespace

TokenRouting::TokenRouting(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k)
    : layers_(layers), experts_(experts), top_k_(top_k) {
  SLUICE_CHECK(layers > 0 && top_k > 0 && top_k <= experts);
}

void TokenRouting::add_token(std::span<const std::uint16_t> ids) {
  SLUICE_CHECK(ids.size() == std::size_t{layers_} * top_k_);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void TokenRouting::append_step(std::span<const std::size_t> tokens, LayerRange range, trace::TracePhase phase,
                               Requests& requests) const {
  SLUICE_CHECK(!tokens.empty() && range.first < range.last && range.last <= layers_);
  std::vector<std::uint32_t> count(experts_);
  std::vector<experts::ExpertId> ids;
  for (std::uint32_t layer = range.first; layer < range.last; ++layer) {
    ids.clear();
    for (const std::size_t token : tokens)
      for (const std::uint16_t expert : chosen(token, layer))
        if (count[expert]++ == 0) ids.push_back({static_cast<std::uint16_t>(layer), expert});
    requests.list.add_event(ids);
    for (const experts::ExpertId id : requests.list.event(requests.list.events() - 1))
      requests.tokens.push_back(std::exchange(count[id.index], 0));
    requests.events.push_back({requests.steps, layer, phase, static_cast<std::uint32_t>(tokens.size())});
  }
  requests.steps += 1;
  requests.prefill_steps += phase == trace::TracePhase::kPrefill;
  requests.trace_tokens += tokens.size();
}

TokenRouting read_token_routing(trace::RoutingTrace& trace, const std::function<bool()>& stop) {
  const trace::TraceHeader& header = trace.header();
  TokenRouting routing(header.layers, header.experts, header.top_k);
  const std::uint32_t k = header.top_k;
  std::vector<std::vector<std::uint16_t>> step;  // of each token: (L, k)
  trace::TraceEvent event;
  for (std::size_t number = 0; trace.next(event); ++number) {
    if (number % 4096 == 0 && stop && stop()) throw Error(ErrorKind::kInterrupted, "interrupted");
    if (event.layer == 0) step.assign(event.tokens, {});
    if (event.tokens != step.size() || event.choices.size() != std::size_t{event.tokens} * k)
      throw Error(ErrorKind::kInvalid, "a token of the trace has not all its experts in every layer")
          .in(trace.path())
          .expected(fmt::format("{} experts of each of {} tokens", k, step.size()))
          .found(fmt::format("{} of {} tokens in layer {}", event.choices.size(), event.tokens, event.layer))
          .fix("give a .mrt trace");
    for (std::uint32_t t = 0; t < event.tokens; ++t)
      for (std::uint32_t c = event.begin[t]; c < event.begin[t + 1]; ++c)
        step[t].push_back(event.choices[c].expert);
    if (event.layer + 1 < header.layers) continue;
    for (const std::vector<std::uint16_t>& ids : step) {
      if (ids.size() != std::size_t{header.layers} * k)
        throw Error(ErrorKind::kInvalid, "a token of the trace has not all its experts in every layer")
            .in(trace.path())
            .fix("give a .mrt trace");
      routing.add_token(ids);
    }
  }
  return routing;
}

TokenRouting synthetic_routing(const SyntheticRouting& settings, SyntheticFacts& facts) {
  const std::uint32_t layers = settings.layers, experts = settings.experts, k = settings.top_k;
  SLUICE_CHECK(settings.prompts > 0 && settings.tokens > 0);
  TokenRouting routing(layers, experts, k);
  Normal normal(settings.seed);
  std::vector<std::vector<std::uint32_t>> rank(layers, std::vector<std::uint32_t>(experts));
  for (std::vector<std::uint32_t>& of_layer : rank) {
    std::iota(of_layer.begin(), of_layer.end(), 0u);
    for (std::uint32_t e = experts; e > 1; --e) std::swap(of_layer[e - 1], of_layer[normal.below(e)]);
  }
  std::vector<std::vector<double>> x(layers, std::vector<double>(experts));
  std::vector<double> z(experts);
  std::vector<std::uint32_t> order(experts);
  std::vector<std::uint16_t> ids, before;
  const double renewal = settings.sigma * std::sqrt(1 - settings.phi * settings.phi);
  facts = {};
  double overlaps = 0;
  for (std::size_t p = 0; p < settings.prompts; ++p) {
    std::vector<std::vector<std::uint32_t>> used(layers, std::vector<std::uint32_t>(experts));
    for (std::vector<std::uint32_t>& of_layer : rank)
      for (std::uint32_t e = 0; e < experts; ++e)
        if (normal.uniform() < settings.d) std::swap(of_layer[e], of_layer[normal.below(experts)]);
    for (std::size_t t = 0; t < settings.tokens; ++t) {
      before.swap(ids);
      ids.clear();
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        double most = -1e300;
        for (std::uint32_t e = 0; e < experts; ++e) {
          double& now = x[layer][e];
          now = t == 0 ? settings.sigma * normal() : settings.phi * now + renewal * normal();
          z[e] = now - settings.a * std::log(static_cast<double>(rank[layer][e] + 1));
          most = std::max(most, z[e]);
        }
        std::iota(order.begin(), order.end(), 0u);
        std::partial_sort(
            order.begin(), order.begin() + k, order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; });
        double all = 0, chosen = 0;
        for (const double value : z) all += std::exp(value - most);
        std::sort(order.begin(), order.begin() + k);
        for (std::uint32_t i = 0; i < k; ++i) {
          const std::uint32_t e = order[i];
          chosen += std::exp(z[e] - most);
          used[layer][e] += 1;
          ids.push_back(static_cast<std::uint16_t>(e));
          if (t > 0) {
            const auto last = std::span(before).subspan(std::size_t{layer} * k, k);
            overlaps += std::ranges::find(last, e) != last.end();
          }
        }
        facts.mass += chosen / all;
      }
      routing.add_token(ids);
    }
    for (const std::vector<std::uint32_t>& of_layer : used)
      facts.f_1 += static_cast<double>(std::ranges::max(of_layer)) / static_cast<double>(settings.tokens);
  }
  const double prompts = static_cast<double>(settings.prompts), tokens = static_cast<double>(settings.tokens);
  facts.f_1 /= prompts * layers;
  facts.mass /= prompts * tokens * layers;
  facts.overlap = settings.tokens > 1 ? overlaps / (prompts * (tokens - 1) * layers * k) : 0;
  return routing;
}

}  // namespace sluice::lab
