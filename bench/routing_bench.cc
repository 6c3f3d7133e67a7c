// sluice_bench_routing [--trace FILE.mrt]
// Fits synthetic routing to what recorded routing is like: a, φ and σ of lab/replay/synthetic_routing.h so
// that f_1, mass and overlap come out; then φ alone for another overlap; then the error of predicted logits
// so that the stated share of predicted top-score experts is right. Prints what is in
// reproduce/smoe/smoe_routing.cc, and beside it what other seeds, lengths and models give. With a trace also
// what that is like.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "lab/replay/assumed_prediction.h"
#include "lab/replay/routed_steps.h"
#include "measure.h"
#include "reproduce/smoe/smoe_routing.h"
#include "reproduce/smoe/top_score_accuracy.h"

namespace sluice {
namespace {

using Row = std::array<double, 3>;

Row figures(const lab::SyntheticRouting& settings) {
  lab::SyntheticTrace trace(settings, 0);
  const lab::RoutingFacts facts = lab::facts_of(trace);
  return {facts.f_1, facts.mass, facts.overlap};
}

// Solves a · x = b by elimination.
Row solved(std::array<Row, 3> a, Row b) {
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t best = i;
    for (std::size_t r = i; r < 3; ++r)
      if (std::abs(a[r][i]) > std::abs(a[best][i])) best = r;
    std::swap(a[i], a[best]);
    std::swap(b[i], b[best]);
    for (std::size_t r = 0; r < 3; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = 0; c < 3; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  return {b[0] / a[0][0], b[1] / a[1][1], b[2] / a[2][2]};
}

void print(const std::string& what, const Row& found) {
  fmt::print("{:<28} f_1 {:.4f}, mass {:.4f}, overlap {:.4f}\n", what, found[0], found[1], found[2]);
}

// Newton's rule, with differences of the same random numbers as derivatives.
void fit(const Row& goal, lab::SyntheticRouting& settings) {
  constexpr double kDifference = .01;
  constexpr int kRounds = 4;
  double* const parameters[] = {&settings.a, &settings.phi, &settings.sigma};
  for (int round = 0; round < kRounds; ++round) {
    const Row here = figures(settings);
    std::array<Row, 3> slopes;
    Row missing;
    for (std::size_t p = 0; p < 3; ++p) {
      *parameters[p] += kDifference;
      const Row there = figures(settings);
      *parameters[p] -= kDifference;
      for (std::size_t i = 0; i < 3; ++i) slopes[i][p] = (there[i] - here[i]) / kDifference;
      missing[p] = goal[p] - here[p];
    }
    const Row step = solved(slopes, missing);
    for (std::size_t p = 0; p < 3; ++p) *parameters[p] += step[p];
    print(fmt::format("a {:.4f}, φ {:.4f}, σ {:.4f}", settings.a, settings.phi, settings.sigma),
          figures(settings));
  }
}

// Where a function that rises or falls over [low, high] has this value.
double crossing(double low, double high, double value, const std::function<double(double)>& function) {
  const bool rises = function(low) < function(high);
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    ((function(middle) < value) == rises ? low : high) = middle;
  }
  return (low + high) / 2;
}

reproduce::TopScoreAccuracy accuracy(double deviation, std::uint32_t top_k, double alpha) {
  lab::SyntheticRouting settings = reproduce::smoe_routing(reproduce::SmoeRoutingKind::kFitted);
  settings.top_k = top_k;
  settings.tokens = 128;
  lab::SyntheticTrace trace(settings, 0);
  lab::RoutedSteps steps = lab::read_routed_steps(trace);
  lab::assume_errors(deviation, settings.seed, steps);
  return reproduce::top_score_accuracy(steps, alpha);
}

void fit_all(const std::string& trace) {
  using enum reproduce::SmoeRoutingKind;
  if (!trace.empty()) {
    const lab::RoutingFacts facts = lab::facts_of(*trace::open_trace(trace));
    print("recorded", {facts.f_1, facts.mass, facts.overlap});
  }
  const lab::RoutingFacts& goal = reproduce::kRecordedFacts;
  lab::SyntheticRouting fitted = reproduce::smoe_routing(kFitted);
  fitted.a = .3, fitted.phi = .4, fitted.sigma = .9;
  fit({goal.f_1, goal.mass, goal.overlap}, fitted);
  lab::SyntheticRouting second = fitted;
  second.phi = crossing(fitted.phi, .99, reproduce::kSecondOverlap, [&](double phi) {
    second.phi = phi;
    return figures(second)[2];
  });
  print(fmt::format("φ {:.4f}", second.phi), figures(second));
  for (const auto kind : {kFitted, kOverlap}) {
    fmt::print("as rounded:\n");
    lab::SyntheticRouting settings = reproduce::smoe_routing(kind);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      settings.seed = seed;
      print(fmt::format("  seed {}", seed), figures(settings));
    }
    settings = reproduce::smoe_routing(kind);
    settings.tokens = 128;
    print("  128 tokens", figures(settings));
    settings = reproduce::smoe_routing(kind);
    settings.top_k = 8;
    print("  top 8", figures(settings));
  }
  const double error = crossing(.01, 2, reproduce::kTopScorePrecision,
                                [](double deviation) { return accuracy(deviation, 8, .25).precision(); });
  fmt::print("error of predicted logits {:.4f}\n", error);
  for (const auto& [top_k, alpha] : {std::pair{8u, .25}, {6u, .3}, {6u, .35}}) {
    const reproduce::TopScoreAccuracy found = accuracy(error, top_k, alpha);
    fmt::print("  top {}, α {}: top-score {:.4f}, active {:.4f}\n", top_k, alpha, found.precision(),
               found.active_share());
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) try {
  using namespace sluice;  // NOLINT
  bench::check_options(argc, argv, {"trace"});
  fit_all(bench::option(argc, argv, "trace", ""));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_routing: {}\n", error.what());
  return 1;
}
