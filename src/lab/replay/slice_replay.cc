#include "lab/replay/slice_replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "experts/cache/residency.h"
#include "experts/registry.h"
#include "experts/routing/precision.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;
using experts::Part;

constexpr std::size_t kEventsBetweenStops = 4096;

void check(const trace::RoutingTrace& trace, const SliceReplaySettings& settings) {
  const trace::TraceHeader& header = trace.header();
  const bool sliced = header.sizes && header.layers > 0 && header.sizes->bytes({0, 0}).msb > 0;
  if (sliced && header.logits) return settings.slices.precision.critical.validate(header.top_k);
  throw Error(ErrorKind::kUsage, "slice-lru is replayed from a trace of a model in slices")
      .in(trace.path())
      .expected("what `sluice trace` records of a store that was packed with --slices")
      .found(header.logits ? "whole experts" : "no router logits")
      .fix("choose another cache, or record such a run");
}

// One event's experts, ascending, with their tokens.
class Active {
 public:
  explicit Active(std::size_t experts) : count_(experts) {}
  void gather(const trace::TraceEvent& event) {
    ids.clear();
    tokens.clear();
    for (const experts::Choice& choice : event.choices)
      if (count_[choice.expert]++ == 0)
        ids.push_back({static_cast<std::uint16_t>(event.layer), choice.expert});
    std::ranges::sort(ids);
    for (ExpertId id : ids) tokens.push_back(std::exchange(count_[id.index], 0));
  }
  std::vector<ExpertId> ids;
  std::vector<std::uint32_t> tokens;

 private:
  std::vector<std::uint32_t> count_;
};

}  // namespace

SliceReplayResult replay_slices(trace::RoutingTrace& trace, const SliceReplaySettings& settings,
                                const std::function<void(std::string_view)>& log,
                                const std::function<bool()>& stop) {
  check(trace, settings);
  const trace::TraceHeader& header = trace.header();
  const trace::TraceSizes& sizes = *header.sizes;
  const bool by_layer = settings.scope == Scope::kLayer;
  experts::CacheConfig config;
  config.keep = Part::kMsb | Part::kLsb;
  config.seed = settings.seed;
  config.slices = settings.slices.cache;
  std::vector<std::unique_ptr<experts::Residency>> caches;
  for (std::uint32_t i = 0; i < (by_layer ? header.layers : 1); ++i)
    caches.push_back(std::make_unique<experts::Residency>(experts::make_cache("slice-lru", config), sizes,
                                                          settings.capacity));
  experts::ConstraintConfig limits = settings.slices.limits;
  limits.low = experts::least_parts(settings.slices.precision.mode);
  experts::MissConstraint constraint(limits, sizes);
  if (log)
    log(experts::decision_heading({.cache = "slice-lru",
                                   .scope = by_layer ? "layer" : "global",
                                   .capacity = settings.capacity,
                                   .keep = config.keep,
                                   .seed = settings.seed,
                                   .slices = settings.slices}));

  SliceReplayResult result;
  const kernels::Context plain{nullptr, Isa::kScalar};
  Active active(header.experts);
  experts::Routing routing;
  experts::SliceDemands demands;
  std::vector<float> scores, mean(header.experts);
  std::string line;
  trace::TraceEvent event;
  bool in_prompt = true, in_decode = false;
  std::uint64_t step = 0;
  for (std::uint64_t number = 0; trace.next(event); ++number) {
    if (number % kEventsBetweenStops == 0 && stop && stop())
      throw Error(ErrorKind::kInterrupted, "interrupted");
    const bool prompt = event.phase == trace::TracePhase::kPrefill;
    if (number > 0 && event.step != step && in_decode) constraint.end_step();
    if (!prompt && in_prompt) constraint.begin_generation();
    in_prompt = prompt;
    in_decode = !prompt;
    step = event.step;

    scores.assign(event.logits.begin(), event.logits.end());
    kernels::softmax_rows(plain, scores.data(), event.tokens, header.experts);
    for (std::uint32_t e = 0; e < header.experts; ++e) {
      double sum = 0;
      for (std::uint32_t t = 0; t < event.tokens; ++t) sum += scores[std::size_t{t} * header.experts + e];
      mean[e] = static_cast<float>(sum / event.tokens);
    }
    routing.choices.assign(event.choices.begin(), event.choices.end());
    routing.begin.assign(event.begin.begin(), event.begin.end());
    experts::set_precision(settings.slices.precision, routing);
    demands.gather({.layer = event.layer,
                    .experts = header.experts,
                    .tokens = event.tokens,
                    .logits = event.logits,
                    .scores = scores,
                    .prompt = prompt},
                   routing);
    active.gather(event);
    experts::Residency& cache = *caches[by_layer ? event.layer : 0];
    const Bytes allowance = prompt ? experts::kAnyBytes : constraint.lsb_allowance(active.ids, cache);
    const experts::EventOutcome& outcome =
        cache.on_event(active.ids, mean, active.tokens, demands.demand(allowance));
    if (!prompt) constraint.on_event(outcome);

    const auto count = [&](ReplayCounts& counts) {
      counts.accesses += active.ids.size();
      counts.hits += outcome.hits.size();
    };
    count(result.total);
    if (!prompt) {
      count(result.decode);
      result.slices.add(outcome, sizes, Part::kMsb, Part::kMsb | Part::kLsb);
    }
    for (const auto* used : {&outcome.hits, &outcome.misses})
      for (const experts::Admission& one : *used) {
        const experts::Parts read = one.to_read();
        if (read.has(Part::kMsb))
          result.bytes_read += sizes.disk_bytes(one.id) - sizes.exp_disk_bytes(one.id);
        if (read.has(Part::kLsb)) result.bytes_read += sizes.exp_disk_bytes(one.id);
      }
    if (log) {
      line.clear();
      experts::append_decision(line, number, event.layer, outcome);
      log(line);
    }
  }
  if (in_decode) constraint.end_step();
  result.account = constraint.account();
  result.cut_off = trace.cut_off();
  result.decision_hash = experts::decision_hash(caches);
  if (log) log(experts::decision_ending(result.decision_hash));
  return result;
}

}  // namespace sluice::lab
