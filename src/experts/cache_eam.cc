// EAM: whoever is expected to be used least leaves, by the activation matrix of the past that is nearest to
// the running one; among equals the least recently used, then the lower id. MoE-Infinity's cache (arXiv
// 2401.14361); SPEC §1.10.
#include <algorithm>
#include <tuple>

#include "experts/activation_matrix.h"
#include "experts/cache_policies.h"

namespace sluice::experts {
namespace {

class EamCache final : public Cache {
 public:
  explicit EamCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport& report) override {
    history_.on_event(report.used);
    event_ = report.event;
    for (const ExpertId id : report.used) last_use_.at(id) = report.event + 1;
  }
  Parts wanted(ExpertId) const override { return keep_; }

  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    candidates_.clear();
    resident_.for_each([&](ExpertId id, const Resident& it) {
      if (!it.parts.empty() && !pinned.pinned(id))
        candidates_.push_back({history_.predicted(id), *last_use_.find(id), id, it});
    });
    std::ranges::sort(candidates_, {},
                      [](const Candidate& c) { return std::tuple(c.predicted, c.last_use, c.id); });
    Bytes freed = 0;
    std::size_t count = 0;
    while (count < candidates_.size() && freed < need) freed += candidates_[count++].resident.bytes;
    if (freed < need) return;
    for (std::size_t i = 0; i < count; ++i) out.push_back({candidates_[i].id, candidates_[i].resident.parts});
  }

  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    resident_.at(id) = {parts, bytes};
    if (last_use_.at(id) == 0) last_use_.at(id) = event_ + 1;
  }
  void on_evict(ExpertId id, Parts parts) override {
    Resident& it = resident_.at(id);
    it.parts = it.parts - parts;
  }
  std::string name() const override { return "eam"; }

 private:
  struct Resident {
    Parts parts;
    Bytes bytes = 0;
  };
  struct Candidate {
    double predicted;
    std::uint64_t last_use;
    ExpertId id;
    Resident resident;
  };

  Parts keep_;
  std::uint64_t event_ = 0;
  ActivationHistory history_;
  ExpertTable<std::uint64_t> last_use_;  // event + 1
  ExpertTable<Resident> resident_;
  std::vector<Candidate> candidates_;  // scratch
};

}  // namespace

std::unique_ptr<Cache> make_eam_cache(const CacheConfig& config) {
  return std::make_unique<EamCache>(config.keep);
}

}  // namespace sluice::experts
