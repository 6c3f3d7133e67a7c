// Zip-affinity: cache-affinity scheduling, ZipMoE (arXiv 2601.21198) Alg. 1; SPEC §1.5. Three variants: with
// the resolved rule of insertion, with the printed rule (literal), and the best of these and of two plain
// single blocks (best-of, ours). The cost guard: a search that would take 5 % of the layer's time, at
// costs.step for each tried decode, falls back to the p-sorted block. The count of decodes stands for the
// clock, so that equal inputs are ordered equally on every machine.
#include "experts/schedule/makespan.h"
#include "experts/schedule/zip_blocks.h"

namespace sluice::experts {
namespace {

class ZipAffinityScheduler final : public Scheduler {
 public:
  ZipAffinityScheduler(InsertRule rule, std::string name) : rule_(rule), name_(std::move(name)) {}
  void order(std::span<const Task> tasks, const ScheduleCosts& costs, Schedule& out) override {
    if (search_.order(tasks, costs, rule_, search_.affordable_decodes(tasks, costs), out)) return;
    order_p_sorted(tasks, out);
    ++fallbacks_;
  }
  std::uint64_t fallbacks() const override { return fallbacks_; }
  std::string name() const override { return name_; }

 private:
  InsertRule rule_;
  std::string name_;
  CacheAffinity search_;
  std::uint64_t fallbacks_ = 0;
};

class BestOfScheduler final : public Scheduler {
 public:
  void order(std::span<const Task> tasks, const ScheduleCosts& costs, Schedule& out) override {
    // Each of the two searches may spend half of the affordable decodes.
    const std::uint64_t most = search_.affordable_decodes(tasks, costs) / 2;
    if (!search_.order(tasks, costs, InsertRule::kAfterPeers, most, out) ||
        !search_.order(tasks, costs, InsertRule::kAnywhere, most, other_)) {
      order_p_sorted(tasks, out);
      ++fallbacks_;
      return;
    }
    double best = simulate(tasks, costs, out).makespan;
    const auto compare = [&] {
      const double makespan = simulate(tasks, costs, other_).makespan;
      if (makespan < best) {
        best = makespan;
        std::swap(out, other_);
      }
    };
    compare();
    order_p_sorted(tasks, other_);
    compare();
    order_type_two_first(tasks, other_);
    compare();
  }
  std::uint64_t fallbacks() const override { return fallbacks_; }
  std::string name() const override { return "zip-affinity-best-of"; }

 private:
  CacheAffinity search_;
  Schedule other_;
  std::uint64_t fallbacks_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_zip_affinity_scheduler() {
  return std::make_unique<ZipAffinityScheduler>(InsertRule::kAfterPeers, "zip-affinity");
}
std::unique_ptr<Scheduler> make_zip_affinity_literal_scheduler() {
  return std::make_unique<ZipAffinityScheduler>(InsertRule::kAnywhere, "zip-affinity-literal");
}
std::unique_ptr<Scheduler> make_zip_affinity_best_of_scheduler() {
  return std::make_unique<BestOfScheduler>();
}

}  // namespace sluice::experts
