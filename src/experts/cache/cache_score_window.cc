// SMoE's cache: of the experts that the running layer does not need, the one with the lowest mean score over
// the last iterations leaves; if all are needed, what was read is used and dropped. A prompt is one
// iteration, whatever its chunks, and prompts of a shared step are one. Scores are of all N experts, selected
// or not. One cache for several layers compares the means of all of them. On a device that computes only
// some of the chosen experts it also takes in, while the link is idle, the one of the others with the highest
// mean, if that exceeds the mean of the one that leaves (Admit::kIdle). SMoE (arXiv 2508.18983 §5.3);
// SPEC §2.4, §10 (G5).
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "experts/cache/cache_policies.h"
#include "experts/cache/drawn_start.h"
#include "experts/cache/score_window.h"

namespace sluice::experts {
namespace {

class ScoreWindowCache final : public Cache {
 public:
  explicit ScoreWindowCache(const CacheConfig& config) : config_(config), keep_(config.keep) {}

  void start(const ExpertSizes& sizes, Bytes capacity, std::vector<Placed>& out) override {
    out = drawn_start(config_, sizes, capacity);
    for (const Placed& one : out) resident_[one.id] = {sizes.bytes(one.id).of(keep_), 0};
  }

  void on_step(const StepReport& report) override {
    event_ = report.event + 1;
    for (const ExpertId id : report.used)
      if (const auto at = resident_.find(id); at != resident_.end()) at->second.event = event_;
    if (!report.scores.empty()) count(report);
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    find_leavers([&](ExpertId id) { return pinned.pinned(id); });
    Bytes freed = 0;
    std::size_t leaving = 0;
    while (freed < need && leaving < leavers_.size()) freed += resident_.at(leavers_[leaving++].id).bytes;
    if (freed < need) return;
    for (const Leaver& one : std::span(leavers_).first(leaving)) out.push_back({one.id, keep_});
  }
  void admit_idle(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                  EventDecision& out) override {
    if (config_.workload.admit != Admit::kIdle) return;
    const std::optional<ExpertId> best = best_elsewhere(report);
    if (!best) return;
    const Bytes need = sizes.bytes(*best).of(keep_);
    Bytes used = 0;
    for (const auto& [id, resident] : resident_) used += resident.bytes;
    find_leavers([&](ExpertId id) { return std::ranges::binary_search(report.used, id); });
    for (auto leaver = leavers_.begin(); used + need > capacity; ++leaver) {
      if (leaver == leavers_.end() || leaver->mean >= mean(*best)) return out.victims.clear();
      used -= resident_.at(leaver->id).bytes;
      out.victims.push_back({leaver->id, keep_});
    }
    out.fetched.push_back({*best, keep_});
  }
  void on_insert(ExpertId id, Parts, Bytes bytes) override { resident_[id] = {bytes, event_}; }
  void on_evict(ExpertId id, Parts) override { resident_.erase(id); }
  std::string name() const override { return "score-window"; }

 private:
  struct Resident {
    Bytes bytes = 0;
    std::uint64_t event = 0;  // the last that used it, from 1; 0: it was there before the first
  };
  struct Leaver {
    double mean = 0;
    std::uint64_t event = 0;
    ExpertId id;
    auto operator<=>(const Leaver&) const = default;
  };
  struct Layer {
    ScoreWindow window;
    std::vector<double> sum;  // (N): over the tokens of the running iteration
    double tokens = 0;
    bool in_prompt = false;  // the last event was of a prompt, and the next one may be, too
  };

  void count(const StepReport& report) {
    const auto experts = static_cast<std::uint32_t>(report.scores.size());
    Layer& layer = windows_
                       .try_emplace(report.place.layer,
                                    Layer{ScoreWindow(experts, config_.workload.score_iterations), {}})
                       .first->second;
    const bool prompt = report.place.step == StepKind::kPrompt;
    const bool goes_on = prompt && layer.in_prompt && !report.place.begins_prompt;
    layer.in_prompt = prompt;
    if (!goes_on) {
      layer.sum.assign(experts, 0);
      layer.tokens = 0;
    }
    const double tokens = tokens_of(report);
    for (std::uint32_t e = 0; e < experts; ++e) layer.sum[e] += tokens * double{report.scores[e]};
    layer.tokens += tokens;
    iteration_.resize(experts);
    for (std::uint32_t e = 0; e < experts; ++e) iteration_[e] = layer.sum[e] / layer.tokens;
    goes_on ? layer.window.replace_last(iteration_) : layer.window.on_iteration(iteration_);
  }

  template <class Stays>
  void find_leavers(const Stays& stays) {
    leavers_.clear();
    for (const auto& [id, resident] : resident_)
      if (!stays(id) && resident.bytes > 0) leavers_.push_back({mean(id), resident.event, id});
    std::ranges::sort(leavers_);
  }

  // The expert with the highest mean, then with the lowest id, of those that some token chose, that are
  // computed elsewhere, and that are not here.
  std::optional<ExpertId> best_elsewhere(const StepReport& report) {
    std::optional<ExpertId> best;
    for (std::size_t e = 0; e < report.place.layer_tokens.size(); ++e) {
      const ExpertId id{static_cast<std::uint16_t>(report.place.layer), static_cast<std::uint16_t>(e)};
      if (report.place.layer_tokens[e] == 0 || std::ranges::binary_search(report.used, id)) continue;
      if (resident_.contains(id)) continue;
      if (!best || mean(id) > mean(*best)) best = id;
    }
    return best;
  }

  // Weight of an event among those of one prompt: choices, and each token has equally many; 1 if unknown.
  static double tokens_of(const StepReport& report) {
    const auto& choices = report.place.layer_tokens.empty() ? report.tokens : report.place.layer_tokens;
    return std::max(1.0, std::accumulate(choices.begin(), choices.end(), 0.0));
  }

  double mean(ExpertId id) {
    const auto layer = windows_.find(id.layer);
    return layer == windows_.end() ? 0 : layer->second.window.means()[id.index];
  }

  const CacheConfig config_;
  const Parts keep_;
  std::uint64_t event_ = 0;
  std::map<ExpertId, Resident> resident_;
  std::map<std::uint32_t, Layer> windows_;
  std::vector<double> iteration_;
  std::vector<Leaver> leavers_;
};

}  // namespace

std::unique_ptr<Cache> make_score_window_cache(const CacheConfig& config) {
  return std::make_unique<ScoreWindowCache>(config);
}

}  // namespace sluice::experts
