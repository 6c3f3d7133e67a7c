#include "engine/plan/pool_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "engine/plan/ranked_reads.h"
#include "experts/plan/rank_model.h"
#include "experts/presets.h"

namespace sluice::engine {
namespace {

using experts::PerPool;
using experts::PoolSlots;
using experts::State;

Json slots_json(const PoolSlots& slots) {
  return {{"F", slots.f}, {"C", slots.c}, {"S", slots.s}, {"E", slots.e}};
}

Json choice_json(const PoolChoice& choice) {
  return {{"slots", slots_json(choice.slots)},
          {"cost_layer_s", choice.expected.cost},
          {"io_layer_s", choice.expected.io},
          {"decode_layer_s", choice.expected.decode},
          {"step_s", choice.step_s},
          {"tok_s", choice.tok_s},
          {"limit", choice.limit},
          {"disk_bytes_per_step", choice.disk_bytes},
          {"wasted_bytes_per_step", choice.wasted_bytes ? Json(*choice.wasted_bytes) : Json()}};
}

// Bytes that an expert of each rank lacks, the hottest being in F, the next in C, and so on.
std::vector<double> missing_by_rank(const ProfiledModel& model, const PoolSlots& slots) {
  const bool split = model.chunks > 0;
  std::vector<double> missing(model.experts, static_cast<double>(split ? model.sm + model.exp : model.full));
  std::size_t r = 0;
  const auto fill = [&](std::uint32_t count, Bytes bytes) {
    for (std::uint32_t i = 0; i < count && r < missing.size(); ++i) missing[r++] = static_cast<double>(bytes);
  };
  fill(slots.f, 0);
  fill(slots.c, 0);
  fill(slots.s, model.exp);
  fill(slots.e, model.sm);
  return missing;
}

// With several reads in flight.
double read_s_per_byte(const Profile& profile, bool split) {
  const ProfiledModel& model = profile.model;
  const double expert = model.tensors * (profile.u.median + (split ? model.chunks * profile.v.median : 0));
  return expert / static_cast<double>(std::max<Bytes>(1, split ? model.sm + model.exp : model.full));
}

}  // namespace

std::vector<double> assumed_ranks(std::uint32_t experts, std::uint32_t k) {
  std::vector<double> f(experts);
  const auto fill = [&](double m) {
    for (std::size_t r = 0; r < f.size(); ++r)
      f[r] = std::min(0.98, m * std::pow(static_cast<double>(r + 1), -0.8));
    return std::accumulate(f.begin(), f.end(), 0.0);
  };
  if (k >= experts) return std::vector<double>(experts, 1.0);
  double low = 0, high = 1;
  while (fill(high) < k && high < 1e9) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (fill(middle) < k ? low : high) = middle;
  }
  fill(high);
  experts::scale_to(k, f);
  return f;
}

std::vector<double> ranks_of_batch(std::span<const double> ranks, std::size_t sequences) {
  std::vector<double> f(ranks.begin(), ranks.end());
  for (double& p : f) p = 1 - std::pow(1 - p, static_cast<double>(sequences));
  return f;
}

namespace {

// Ranks and the number of experts of a layer that a step uses, for the whole batch.
void set_ranks(PoolPlan& plan, const ProfiledModel& model, const PoolPlanRequest& request) {
  plan.ranks_assumed = request.ranks.empty();
  std::vector<double> ranks = plan.ranks_assumed ? assumed_ranks(model.experts, model.top_k) : request.ranks;
  if (ranks.size() != model.experts)
    throw Error(ErrorKind::kInvalid, "the recorded routing is of another model")
        .expected(fmt::format("{} experts a layer", model.experts))
        .found(std::to_string(ranks.size()))
        .fix("record it again: sluice trace");
  ranks = ranks_of_batch(ranks, std::max<std::size_t>(1, request.sequences));
  const double sum = std::accumulate(ranks.begin(), ranks.end(), 0.0);
  plan.distinct = std::clamp(static_cast<std::uint32_t>(std::llround(sum)), 1u, model.experts);
  if (plan.distinct == model.experts)
    ranks.assign(model.experts, 1.0);
  else
    experts::scale_to(plan.distinct, ranks);
  plan.ranks = std::move(ranks);
}

// Computes what choices of slots cost. References must outlive it.
class ChoiceCosts {
 public:
  ChoiceCosts(const Profile& profile, const PoolPlanRequest& request, const PoolPlan& plan)
      : profile_(profile),
        model_(profile.model),
        ranks_(plan.ranks),
        prefetches_(!request.prefetch.empty() && request.prefetch->prefetches),
        guesses_known_(prefetches_ && request.prefetch->guesses_known),
        sequences_(static_cast<double>(std::max<std::size_t>(1, request.sequences))),
        law_(experts::make_rank_model(plan.ranks, plan.distinct)),
        costs_{model_.tensors, profile.costs().fetch} {
    const double tokens = sequences_ * model_.top_k / plan.distinct;
    const experts::ComputeTime run = profile.costs().run;
    each_s_ = run.fixed + run.per_token * tokens;
    compute_s_ = plan.distinct * each_s_;
  }

  const experts::RankModel& law() const { return law_; }
  const experts::LayerCosts& costs() const { return costs_; }
  double compute_s() const { return compute_s_; }  // for one layer of one step

  PoolChoice of(const PoolSlots& slots) const {
    PoolChoice choice;
    choice.slots = slots;
    choice.expected = experts::expected_cost(law_, slots, costs_);
    const std::vector<double> missing = missing_by_rank(model_, slots);
    const RankedReads reads{ranks_, missing};
    double none_missing = 1;  // the probability that a layer needs no read
    for (std::size_t r = 0; r < ranks_.size(); ++r) none_missing *= missing[r] > 0 ? 1 - ranks_[r] : 1;
    const double wait = (1 - none_missing) * profile_.latency.median;
    choice.disk_bytes = needed_bytes(reads) * model_.layers;
    // Computing continues while other experts are on their way, except for the last expert.
    double layer = std::max(choice.expected.cost + wait + each_s_, compute_s_);
    const double spare =
        std::max(0.0, layer + profile_.rest.median / model_.layers - choice.expected.io - wait);
    if (!prefetches_) choice.wasted_bytes = 0;
    if (guesses_known_) layer += add_waste(choice, reads, spare);
    choice.step_s = profile_.rest.median + model_.layers * layer;
    choice.tok_s = choice.step_s > 0 ? sequences_ / choice.step_s : 0;
    const double compute = compute_s_ + profile_.rest.median / model_.layers;
    choice.limit = compute >= std::max(choice.expected.io + wait, choice.expected.decode) ? "compute"
                   : choice.expected.io + wait >= choice.expected.decode                  ? "disk"
                                                                                          : "decode";
    return choice;
  }

 private:
  // Returns the time of a layer that demand waits behind reads in vain. `spare`: the disk's idle time.
  double add_waste(PoolChoice& choice, const RankedReads& reads, double spare) const {
    const bool split = model_.chunks > 0;
    const auto largest = static_cast<double>(split ? model_.sm + model_.exp : model_.full);
    const NamedAhead ahead = named_by_stream(reads);
    const double second = read_s_per_byte(profile_, split) * (ahead.right + ahead.wrong);
    const double begun = second > spare ? spare / second : 1;  // the share of all that is named
    // The first sparse layer is not read ahead of. Half of a read in vain is on its way when demand comes.
    choice.wasted_bytes = begun * ahead.wrong * (model_.layers - 1);
    return std::min(begun * ahead.wrong, largest) / 2 * read_s_per_byte(profile_, split);
  }

  const Profile& profile_;
  const ProfiledModel& model_;
  const std::vector<double>& ranks_;
  const bool prefetches_, guesses_known_;
  double sequences_, each_s_ = 0, compute_s_ = 0;
  experts::RankModel law_;
  experts::LayerCosts costs_;
};

}  // namespace

PoolShares shares_of(const experts::Preset& preset) {
  return preset.sharing == experts::PoolSharing::kEqual ? PoolShares::kEqual : PoolShares::kPlanned;
}

PoolPlan plan_pools(const Profile& profile, const PoolPlanRequest& request) {
  const ProfiledModel& model = profile.model;
  PoolPlan plan;
  if (model.layers == 0 || model.experts == 0) return plan;
  set_ranks(plan, model, request);
  const ChoiceCosts costs(profile, request, plan);
  plan.compute_s = costs.compute_s();

  const bool split = model.chunks > 0;
  experts::PlanRequest asked;
  asked.pools = split ? PerPool<bool>{true, true, true, true} : PerPool<bool>{true, false, false, false};
  asked.grid = request.grid;
  plan.layer_memory = request.memory / model.layers;
  asked.memory = static_cast<double>(plan.layer_memory);
  const auto bytes = [](Bytes value) { return static_cast<double>(std::max<Bytes>(1, value)); };
  asked.sizes = {bytes(model.full), bytes(model.sm + model.exp), bytes(model.sm), bytes(model.exp)};

  const experts::ZipPlan zip = experts::make_zip_plan(costs.law(), costs.costs(), asked);
  const double pools = split ? 4 : 1;
  const PerPool<double> equal =
      split ? PerPool<double>{1 / pools, 1 / pools, 1 / pools, 1 / pools} : PerPool<double>{1, 0, 0, 0};
  const auto of_shares = [&](const PerPool<double>& shares) {
    return costs.of(experts::slots_of_shares(shares, asked.memory, asked.sizes, model.experts));
  };
  plan.configurations = zip.configurations;
  plan.f_only = of_shares({1, 0, 0, 0});
  plan.equal_shares = of_shares(equal);
  if (request.shares == PoolShares::kEqual) {
    plan.gamma = equal;
    plan.chosen = plan.equal_shares;
    return plan;
  }
  plan.gamma = zip.gamma;
  plan.chosen = costs.of(zip.slots);
  // The planner's cost of a layer does not have the disk's time to answer. Where that is long, experts that
  // need no read at all may be worth more than more of them that need some.
  if (plan.f_only.step_s < plan.chosen.step_s) {
    plan.gamma = {1, 0, 0, 0};
    plan.chosen = plan.f_only;
  }
  return plan;
}

Json to_json(const PoolPlan& plan) {
  Json json = choice_json(plan.chosen);
  json["gamma"] = {{"F", plan.gamma.f}, {"C", plan.gamma.c}, {"S", plan.gamma.s}, {"E", plan.gamma.e}};
  json["alternatives"] = {{"f_only", choice_json(plan.f_only)},
                          {"equal_shares", choice_json(plan.equal_shares)}};
  json["configurations"] = plan.configurations;
  json["distinct_experts"] = plan.distinct;
  json["ranks_assumed"] = plan.ranks_assumed;
  json["layer_memory"] = plan.layer_memory;
  json["compute_layer_s"] = plan.compute_s;
  return json;
}

}  // namespace sluice::engine
