#include "engine/draft/draft_guard.h"

#include <algorithm>
#include <numeric>

namespace sluice::engine {
namespace {

// Steps without drafts that are seen before any draft; and as many as their mean looks back.
constexpr double kFirstPlain = 4, kMostPlain = 16;
// One step that takes this many times the mean was disturbed: it counts as that.
constexpr double kDisturbed = 3;
// After this many steps with drafts one goes without, so that the mean is of the text that is being written.
constexpr std::size_t kPlainAgain = 24;
// What a token more adds to the dense part of a step, before it is known: weights are read once.
constexpr double kDenseShare = 0.25;
// All that is known fades by the first factor at each step with this many drafts, what was measured by the
// second at each step without: so what did not pay is tried again after some hundred tokens.
constexpr double kFade = 0.9, kForget = 0.998;
constexpr double kLeast = 0.05, kMost = 10;  // times what was expected
// So much faster must drafts be.
constexpr double kMargin = 1.05;
// Beyond this many sequences nothing is measured, and nothing drafted.
constexpr std::size_t kMostSequences = 64;

}  // namespace

std::size_t DraftShape::drafted() const {
  return std::accumulate(tokens.begin(), tokens.end(), std::size_t{0});
}

DraftShape shape_of(std::span<const std::size_t> drafts) {
  DraftShape shape{.sequences = drafts.size()};
  for (const std::size_t count : drafts)
    for (std::size_t i = 0; i < count; ++i) shape.tokens[i] += 1;
  return shape;
}

const DraftGuard::Plain* DraftGuard::plain(std::size_t sequences) const {
  if (sequences == 0 || sequences > plain_.size()) return nullptr;
  const Plain& plain = plain_[sequences - 1];
  return plain.seen < kFirstPlain ? nullptr : &plain;
}

// A token reads what it would read by itself, but nothing that an earlier token of the step has. Both the
// reads and the products are counted in full, as if they could not go on beside each other.
double DraftGuard::counted_seconds(const Plain& plain, const DraftShape& shape) const {
  const DecodeCost& mean = plain.mean;
  const auto sequences = static_cast<double>(shape.sequences);
  const double reading = std::min(mean.demand_s, mean.moe_s), computing = mean.moe_s - reading;
  const double of_access = mean.accesses > 0 ? computing / mean.accesses : 0;
  const double of_miss = mean.misses > 0 ? reading / mean.misses : 0;
  const double dense = kDenseShare * std::max(0.0, mean.seconds - mean.moe_s) / sequences;
  double seconds = 0;
  for (std::size_t i = 0; i < kMostDrafts; ++i) {
    const double fresh = fresh_[i + 1];
    seconds += static_cast<double>(shape.tokens[i]) *
               (dense + of_access * fresh + of_miss * std::min(fresh, mean.misses / sequences));
  }
  return seconds;
}

double DraftGuard::added_seconds(const Plain& plain, const DraftShape& shape) const {
  const std::size_t drafted = shape.drafted();
  if (drafted == 0) return 0;
  const double counted = counted_seconds(plain, shape);
  const Beside& beside = beside_[std::min(drafted, kMostDrafts) - 1];
  const double prior = beside.prior * counted;
  if (prior + beside.expected <= 0) return 0;
  return counted * std::clamp((prior + beside.measured) / (prior + beside.expected), kLeast, kMost);
}

double DraftGuard::seconds(const DraftShape& shape) const {
  const Plain* const known = plain(shape.sequences);
  return known == nullptr ? 0 : known->mean.seconds + added_seconds(*known, shape);
}

void DraftGuard::count(const DraftShape& shape, const DecodeCost& cost, const FreshMeans& fresh) {
  fresh_ = fresh;
  if (shape.sequences == 0 || shape.sequences > kMostSequences) return;
  if (const std::size_t drafted = shape.drafted(); drafted != 0) {
    since_plain_ += 1;
    const Plain* const known = plain(shape.sequences);
    if (known == nullptr) return;
    Beside& beside = beside_[std::min(drafted, kMostDrafts) - 1];
    const double expected = known->mean.seconds + counted_seconds(*known, shape);
    beside.measured =
        kFade * beside.measured + std::min(cost.seconds, kDisturbed * expected) - known->mean.seconds;
    beside.expected = kFade * beside.expected + counted_seconds(*known, shape);
    beside.prior *= kFade;
    return;
  }
  since_plain_ = 0;
  for (Beside& beside : beside_) {
    beside.measured *= kForget;
    beside.expected *= kForget;
    beside.prior += (1 - kForget) * (kExpectedSteps - beside.prior);
  }
  if (plain_.size() < shape.sequences) plain_.resize(shape.sequences);
  Plain& plain = plain_[shape.sequences - 1];
  plain.seen = std::min(plain.seen + 1, kMostPlain);
  const double most = kDisturbed * plain.mean.seconds;
  const double part = plain.seen > 1 && cost.seconds > most ? most / cost.seconds : 1;
  const auto add = [&](double& mean, double value) { mean += (value - mean) / plain.seen; };
  add(plain.mean.seconds, part * cost.seconds);
  add(plain.mean.moe_s, part * cost.moe_s);
  add(plain.mean.demand_s, part * cost.demand_s);
  add(plain.mean.accesses, cost.accesses);
  add(plain.mean.misses, cost.misses);
}

void DraftGuard::choose_all(std::span<const DraftOffer> offers, std::size_t most,
                            std::span<std::size_t> counts) {
  for (std::size_t i = 0; i < offers.size(); ++i) {
    counts[i] = std::min(offers[i].count, most);
    most -= counts[i];
  }
}

void DraftGuard::choose(std::span<const DraftOffer> offers, std::size_t most, std::span<std::size_t> counts) {
  std::ranges::fill(counts, 0);
  if (when_ == DraftWhen::kAlways) return choose_all(offers, most, counts);
  const Plain* const known = plain(offers.size());
  if (known == nullptr || known->mean.seconds <= 0 || since_plain_ >= kPlainAgain) return;
  // The likeliest token of all offers joins, again and again; what is best on the way is taken.
  std::vector<std::size_t> joined(offers.size()), order;
  DraftShape shape{.sequences = offers.size()};
  double expected = static_cast<double>(offers.size());
  double best = kMargin * expected / known->mean.seconds;
  std::size_t taken = 0;
  while (order.size() < most) {
    std::size_t next = offers.size();
    double chance = 0;
    for (std::size_t i = 0; i < offers.size(); ++i)
      if (joined[i] < offers[i].count && offers[i].chance[joined[i]] > chance) {
        next = i;
        chance = offers[i].chance[joined[i]];
      }
    if (next == offers.size()) break;
    shape.tokens[joined[next]++] += 1;
    order.push_back(next);
    expected += chance;
    const double rate = expected / (known->mean.seconds + added_seconds(*known, shape));
    if (rate <= best) continue;
    best = rate;
    taken = order.size();
  }
  for (std::size_t i = 0; i < taken; ++i) counts[order[i]] += 1;
}

}  // namespace sluice::engine
