#include "experts/cache/workload/reuse_forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace sluice::experts {
namespace {

constexpr std::array<float, ReuseForecast::kHalfLives> kHalfLife = {4, 16, 64, 256};  // events
constexpr float kLeast = .003f;    // keeps log odds finite; rarer experts are alike
constexpr float kRate = .05f;      // how fast it learns
constexpr float kPrior = 8;        // uses that an expert's followers are assumed to have had already
constexpr float kPriorTime = .5f;  // events that averages are assumed to have had already
constexpr float kAgeScale = .3f;   // brings the logarithm of an age to the size of the other features
constexpr std::uint64_t kOldest = 1000;

float log_odds(float p) {
  p = std::clamp(p, 0.f, 1.f);
  return std::log((p + kLeast) / (1 - p + kLeast));
}

}  // namespace

// Bias; four fading averages; the plain one; used now; used in the event before; age; followers. Learned on
// DeepSeek-V2-Lite's trace tests/data/routing/dsv2lite.summary612.mrt.zst (layers together).
const std::array<float, ReuseForecast::kFeatures> ReuseForecast::kFirst = {1.10f, .25f, .27f, .10f, -.20f,
                                                                           -.05f, .34f, .14f, .22f, .60f};

void ReuseForecast::grow(std::size_t experts) {
  if (experts <= experts_.size()) return;
  experts_.resize(experts);
  scores_.resize(experts);
  averages_.resize(experts);
  follows_.resize(experts);
  for (Expert& one : experts_) one.next.resize(experts <= kMostPaired ? experts : 0);
}

Bytes ReuseForecast::bytes(std::size_t experts) {
  const std::size_t numbers =
      sizeof(Expert) + kHorizon * sizeof(Features) + 3 * sizeof(Features::value_type) + sizeof(PairCount);
  const std::size_t pairs = experts <= kMostPaired ? experts * experts : 0;
  return Bytes{experts * numbers + pairs * sizeof(PairCount)};
}

void ReuseForecast::on_event(const Event& event) {
  SLUICE_CHECK(event.tokens.empty() || event.tokens.size() == event.used.size());
  if (!event.used.empty()) grow(event.used.back() + std::size_t{1});
  ++now_;
  for (const std::uint16_t id : event.used) experts_[id].last = now_;
  learn();
  count(event);
  forecast();
}

// The forecast of kHorizon events ago has come true, or not.
void ReuseForecast::learn() {
  const std::vector<Features>& past = past_[now_ % kHorizon];
  if (past.empty()) return;
  Features gradient{};
  for (std::size_t i = 0; i < past.size(); ++i) {
    float sum = 0;
    for (std::size_t f = 0; f < kFeatures; ++f) sum += past[i][f] * weights_[f];
    const bool came = experts_[i].last + kHorizon > now_;
    const float error = (came ? 1.f : 0.f) - 1 / (1 + std::exp(-sum));
    for (std::size_t f = 0; f < kFeatures; ++f) gradient[f] += error * past[i][f];
  }
  for (std::size_t f = 0; f < kFeatures; ++f) {
    const float step = gradient[f] / static_cast<float>(past.size());
    squares_[f] += step * step;
    weights_[f] += kRate * step / std::sqrt(squares_[f]);
  }
}

void ReuseForecast::count(const Event& event) {
  const bool prompt = event.prompt_tokens > 1;  // one token is a moment like any other
  if (!prompt) {
    for (const std::uint16_t before : used_) count_pairs(experts_[before], event.used);
  }
  const float length = prompt ? static_cast<float>(event.prompt_tokens) : 1;
  for (std::size_t h = 0; h < kHalfLives; ++h) {
    const float keep = std::exp2(-length / kHalfLife[h]);
    for (Expert& one : experts_) one.faded[h] *= keep;
    for (std::size_t i = 0; i < event.used.size(); ++i) {
      const float share =
          prompt && !event.tokens.empty() ? static_cast<float>(event.tokens[i]) / length : 1.f;
      experts_[event.used[i]].faded[h] += (1 - keep) * share;
    }
  }
  float chosen = 0;
  for (std::size_t i = 0; i < event.used.size(); ++i) {
    const float uses = prompt && !event.tokens.empty() ? static_cast<float>(event.tokens[i]) : 1.f;
    experts_[event.used[i]].uses += uses;
    chosen += uses;
  }
  time_ += static_cast<double>(length);
  if (!event.used.empty()) per_event_ = chosen / length;
  used_.assign(event.used.begin(), event.used.end());
}

void ReuseForecast::count_pairs(Expert& before, std::span<const std::uint16_t> used) {
  if (before.next.empty()) return;
  if (before.followed == std::numeric_limits<PairCount>::max()) {
    before.followed /= 2;
    for (PairCount& uses : before.next) uses /= 2;
  }
  before.followed += 1;
  for (const std::uint16_t id : used) before.next[id] += 1;
}

void ReuseForecast::forecast() {
  const std::size_t experts = experts_.size();
  const auto time = static_cast<float>(time_) + kPriorTime;
  const float prior = experts == 0 ? 0 : kPriorTime * per_event_ / static_cast<float>(experts);
  for (std::size_t i = 0; i < experts; ++i) averages_[i] = std::min((experts_[i].uses + prior) / time, 1.f);
  if (used_.empty() || experts > kMostPaired) {
    follows_ = averages_;
  } else {
    std::ranges::fill(follows_, 0.f);
    const float share = 1 / static_cast<float>(used_.size());
    for (const std::uint16_t before : used_) {
      const Expert& one = experts_[before];
      const float scale = share / (static_cast<float>(one.followed) + kPrior);
      for (std::size_t i = 0; i < experts; ++i)
        follows_[i] += scale * (static_cast<float>(one.next[i]) + kPrior * averages_[i]);
    }
  }
  std::vector<Features>& now = past_[now_ % kHorizon];
  now.resize(experts);
  for (std::size_t i = 0; i < experts; ++i) {
    const Expert& one = experts_[i];
    Features& x = now[i];
    const std::uint64_t age = one.last == 0 ? kOldest : std::min(now_ - one.last, kOldest);
    x[0] = 1;
    for (std::size_t h = 0; h < kHalfLives; ++h) x[1 + h] = log_odds(one.faded[h]);
    x[kHalfLives + 1] = log_odds(averages_[i]);
    x[kHalfLives + 2] = age == 0 ? 1.f : 0.f;
    x[kHalfLives + 3] = age == 1 ? 1.f : 0.f;
    x[kHalfLives + 4] = kAgeScale * std::log1p(static_cast<float>(age));
    x[kHalfLives + 5] = log_odds(follows_[i]);
    float sum = 0;
    for (std::size_t f = 0; f < kFeatures; ++f) sum += x[f] * weights_[f];
    scores_[i] = sum;
  }
}

}  // namespace sluice::experts
