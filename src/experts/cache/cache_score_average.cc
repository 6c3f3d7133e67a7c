// HybriMoE's cache: the expert whose faded router score is lowest leaves. Each layer's scores are averaged as
// S = a * TopP(s) + (1 - a) * S, where TopP keeps the P highest mean scores of the event and makes the others
// 0.
// `hybrimoe` is it as it is coded, a = .5; `d-hybrimoe` is what DALI compares itself with, a = .3; P = 2k.
// HybriMoE (arXiv 2504.05897); SPEC §3.7 and §10 (G10).
#include <algorithm>
#include <map>
#include <numeric>

#include "experts/cache/cache_policies.h"

namespace sluice::experts {
namespace {

class ScoreAverageCache final : public Cache {
 public:
  ScoreAverageCache(const char* name, double weight, const CacheConfig& config)
      : name_(name), weight_(weight), kept_(2 * std::size_t{config.workload.top_k}), keep_(config.keep) {}

  void on_step(const StepReport& report) override {
    event_ = report.event;
    for (const ExpertId id : report.used)
      if (const auto at = resident_.find(id); at != resident_.end()) at->second.event = event_;
    if (!report.scores.empty()) average(report.place.layer, report.scores);
  }
  Parts wanted(ExpertId) const override { return keep_; }
  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    leavers_.clear();
    for (const auto& [id, resident] : resident_)
      if (!pinned.pinned(id) && resident.bytes > 0) leavers_.push_back({score(id), resident.event, id});
    std::ranges::sort(leavers_);
    Bytes freed = 0;
    std::size_t count = 0;
    while (freed < need && count < leavers_.size()) freed += resident_.at(leavers_[count++].id).bytes;
    if (freed < need) return;
    for (std::size_t i = 0; i < count; ++i) out.push_back({leavers_[i].id, keep_});
  }
  void on_insert(ExpertId id, Parts, Bytes bytes) override { resident_[id] = {bytes, event_}; }
  void on_evict(ExpertId id, Parts) override { resident_.erase(id); }
  std::string name() const override { return name_; }

 private:
  struct Resident {
    Bytes bytes = 0;
    std::uint64_t event = 0;  // the last that used it
  };
  struct Leaver {
    double score = 0;
    std::uint64_t event = 0;
    ExpertId id;
    auto operator<=>(const Leaver&) const = default;
  };

  void average(std::uint32_t layer, std::span<const float> scores) {
    std::vector<double>& averaged = averaged_[layer];
    averaged.resize(scores.size());
    ranking_.resize(scores.size());
    std::iota(ranking_.begin(), ranking_.end(), 0u);
    const std::size_t kept = std::min(kept_, scores.size());
    std::ranges::partial_sort(ranking_, ranking_.begin() + static_cast<std::ptrdiff_t>(kept),
                              [&](std::uint32_t a, std::uint32_t b) {
                                return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                              });
    for (double& one : averaged) one *= 1 - weight_;
    for (std::size_t i = 0; i < kept; ++i)
      averaged[ranking_[i]] += weight_ * static_cast<double>(scores[ranking_[i]]);
  }

  double score(ExpertId id) const {
    const auto layer = averaged_.find(id.layer);
    return layer == averaged_.end() || id.index >= layer->second.size() ? 0 : layer->second[id.index];
  }

  const char* name_;
  const double weight_;
  const std::size_t kept_;
  const Parts keep_;
  std::uint64_t event_ = 0;
  std::map<ExpertId, Resident> resident_;
  std::map<std::uint32_t, std::vector<double>> averaged_;  // by layer, (N)
  std::vector<std::uint32_t> ranking_;
  std::vector<Leaver> leavers_;
};

}  // namespace

std::unique_ptr<Cache> make_hybrimoe_cache(const CacheConfig& config) {
  return std::make_unique<ScoreAverageCache>("hybrimoe", .5, config);
}
std::unique_ptr<Cache> make_d_hybrimoe_cache(const CacheConfig& config) {
  return std::make_unique<ScoreAverageCache>("d-hybrimoe", .3, config);
}

}  // namespace sluice::experts
