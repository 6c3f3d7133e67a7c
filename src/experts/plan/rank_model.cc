#include "experts/plan/rank_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {
namespace {

constexpr double kCertain = 1e-12;  // so near to 0 or 1 counts as 0 or 1
constexpr std::uint32_t kMostIterations = 20000;

// q_i = s w_i / (1 + s w_i) with Σ q = k to `tolerance`; finds s by bisection of its logarithm. 0 < k < |w|.
void draws(std::span<const double> log_w, double k, double tolerance, std::vector<double>& q) {
  const auto [least, most] = std::ranges::minmax(log_w);
  double low = -most - 800, high = -least + 800;
  q.resize(log_w.size());
  for (;;) {
    const double log_s = low + (high - low) / 2;
    double sum = 0;
    for (std::size_t i = 0; i < q.size(); ++i) sum += q[i] = 1 / (1 + std::exp(-log_w[i] - log_s));
    if (std::abs(sum - k) <= tolerance || log_s <= low || log_s >= high) return;
    (sum < k ? low : high) = log_s;
  }
}

// Inclusion probabilities. Any s in draws() gives the same law; an s near Σ q = k keeps the tables from
// overflow and underflow.
class Inclusion {
 public:
  void run(std::span<const double> log_w, std::uint32_t k, std::vector<double>& f) {
    draws(log_w, k, 1e-3, q_);
    const std::size_t n = q_.size(), width = k + std::size_t{1};
    // prefix[i][h]: the probability of h draws among the first i; suffix[i][h]: of h draws among those from i
    // on.
    prefix_.assign((n + 1) * width, 0);
    suffix_.assign((n + 1) * width, 0);
    prefix_[0] = suffix_[n * width] = 1;
    const auto add = [width](const double* from, double* to, double q) {
      to[0] = from[0] * (1 - q);
      for (std::size_t h = 1; h < width; ++h) to[h] = from[h] * (1 - q) + from[h - 1] * q;
    };
    for (std::size_t i = 0; i < n; ++i) add(&prefix_[i * width], &prefix_[(i + 1) * width], q_[i]);
    for (std::size_t i = n; i > 0; --i) add(&suffix_[i * width], &suffix_[(i - 1) * width], q_[i - 1]);
    const double all = prefix_[n * width + k];
    f.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      double others = 0;
      for (std::size_t h = 0; h < k; ++h)
        others += prefix_[i * width + h] * suffix_[(i + 1) * width + k - 1 - h];
      f[i] = q_[i] * others / all;
    }
  }

 private:
  std::vector<double> q_, prefix_, suffix_;
};

double log_odds(double f) { return std::log(f) - std::log1p(-f); }

// log w of experts that are neither certain nor impossible, with geometric mean 1. 0 < k < |f|.
std::vector<double> fit(std::span<const double> f, std::uint32_t k, WeightUpdate update, double tolerance,
                        std::uint32_t& iterations) {
  std::vector<double> log_w(f.size()), now;
  for (std::size_t i = 0; i < f.size(); ++i) log_w[i] = std::log(f[i]);
  Inclusion inclusion;
  const auto rescale = [&] {
    const double mean = std::accumulate(log_w.begin(), log_w.end(), 0.0) / static_cast<double>(log_w.size());
    for (double& w : log_w) w -= mean;
  };
  for (iterations = 0; iterations < kMostIterations; ++iterations) {
    inclusion.run(log_w, k, now);
    double error = 0;
    for (std::size_t i = 0; i < f.size(); ++i) error = std::max(error, std::abs(now[i] - f[i]));
    if (error < tolerance) break;
    for (std::size_t i = 0; i < f.size(); ++i) {
      const double at = std::clamp(now[i], std::numeric_limits<double>::min(), 1 - 1e-16);
      log_w[i] +=
          update == WeightUpdate::kOdds ? log_odds(f[i]) - log_odds(at) : std::log(f[i]) - std::log(at);
    }
    rescale();
  }
  rescale();
  return log_w;
}

}  // namespace

std::vector<double> inclusion(std::span<const double> w, std::uint32_t k) {
  SLUICE_CHECK(k > 0 && k < w.size());
  std::vector<double> log_w, f;
  for (double weight : w) log_w.push_back(std::log(weight));
  Inclusion().run(log_w, k, f);
  return f;
}

RankModel make_rank_model(std::span<const double> f, std::uint32_t k, WeightUpdate update, double tolerance) {
  const double sum = std::accumulate(f.begin(), f.end(), 0.0);
  const auto legal = [](double x) { return x >= 0 && x <= 1; };
  if (!std::ranges::all_of(f, legal) || k == 0 || !(std::abs(sum - k) <= 1e-6 * k)) {
    throw Error(ErrorKind::kInvalid, "no choice of k experts has these frequencies")
        .in("f")
        .expected("numbers in [0, 1] whose sum is k = " + std::to_string(k))
        .found("the sum " + std::to_string(sum));
  }
  RankModel model{.k = k, .w = std::vector<double>(f.size()), .q = std::vector<double>(f.size()), .phi = {}};
  std::vector<std::size_t> open;  // neither certain nor impossible
  std::vector<double> open_f;
  std::uint32_t left = k;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (f[i] >= 1 - kCertain) {
      model.w[i] = std::numeric_limits<double>::infinity();
      model.q[i] = 1;
      left -= left > 0;
    } else if (f[i] > kCertain) {
      open.push_back(i);
      open_f.push_back(f[i]);
    }
  }
  if (left > 0 && left < open.size()) {
    const std::vector<double> log_w = fit(open_f, left, update, tolerance, model.iterations);
    std::vector<double> q;
    draws(log_w, left, 0, q);
    for (std::size_t i = 0; i < open.size(); ++i) {
      model.w[open[i]] = std::exp(log_w[i]);
      model.q[open[i]] = q[i];
    }
  } else {
    // All open ranks are certain, or none is: what Σ f leaves to them is within its tolerance.
    for (std::size_t i : open) {
      model.w[i] = left > 0 ? std::numeric_limits<double>::infinity() : 0;
      model.q[i] = left > 0 ? 1 : 0;
    }
  }
  model.phi = poisson_binomial(model.q);
  return model;
}

std::vector<double> poisson_binomial(std::span<const double> q) {
  std::vector<double> phi(q.size() + 1);
  phi[0] = 1;
  for (std::size_t m = 1; m <= q.size(); ++m) {
    const double draw = q[m - 1];
    for (std::size_t h = m; h > 0; --h) phi[h] = phi[h] * (1 - draw) + phi[h - 1] * draw;
    phi[0] *= 1 - draw;
  }
  return phi;
}

}  // namespace sluice::experts
