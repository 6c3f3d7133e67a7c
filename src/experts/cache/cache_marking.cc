// Marking: a used expert is marked; the victim is drawn uniformly from the unmarked experts; when all are
// marked, all except the running event's lose their marks (a new phase). Fiat, Karp, Luby, McGeoch, Sleator
// and Young, "Competitive paging algorithms", J. Algorithms 12(4), 1991, §3; baseline of ZipMoE (arXiv
// 2601.21198) §5.4; SPEC §1.7.
#include "base/splitmix64.h"
#include "experts/cache/cache_policies.h"
#include "experts/core/expert_table.h"

namespace sluice::experts {
namespace {

// Uniform in [0, count), without bias.
std::size_t below(std::size_t count, SplitMix64& random) {
  const std::uint64_t reject = -std::uint64_t{count} % count;  // 2^64 mod count
  std::uint64_t value;
  do value = random.next();
  while (value < reject);
  return value % count;
}

class MarkingCache final : public Cache {
 public:
  explicit MarkingCache(const CacheConfig& config) : keep_(config.keep), random_(config.seed) {}

  void on_step(const StepReport& report) override {
    for (ExpertId id : running_) {  // the last event's experts may be victims again, but stay marked
      if (slots_.at(id).group == kRunning) move(id, marked_);
    }
    running_.clear();
    for (ExpertId id : report.used) {
      const Slot* slot = slots_.find(id);
      if (slot != nullptr && slot->group != kAbsent) run(id);
    }
  }
  Parts wanted(ExpertId) const override { return keep_; }

  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    if (group_bytes_[0] + group_bytes_[1] < need) return;
    // A rehearsal on the lists; all lists are restored afterwards. The marks stay changed only if enough room
    // was found.
    const std::size_t before = out.size();
    const SplitMix64 random_before = random_;
    const int marked_before = marked_;
    Bytes freed = 0;
    drawn_.clear();
    while (freed < need) {
      if (groups_[1 - marked_].empty()) {
        if (groups_[marked_].empty()) break;
        marked_ = 1 - marked_;  // a new phase: all marked experts become unmarked
      }
      const std::vector<ExpertId>& unmarked = groups_[1 - marked_];
      const ExpertId id = unmarked[below(unmarked.size(), random_)];
      drawn_.push_back({id, slots_.at(id).group});
      leave(id);
      if (pinned.pinned(id)) continue;
      out.push_back({id, keep_});
      freed += slots_.at(id).bytes;
    }
    if (freed < need) {
      out.resize(before);
      random_ = random_before;
      marked_ = marked_before;
    }
    for (const Drawn& drawn : drawn_) join(drawn.id, drawn.group);
  }

  void on_insert(ExpertId id, Parts, Bytes bytes) override {
    Slot& slot = slots_.at(id);
    if (slot.group != kAbsent) leave(id);
    slot.bytes = bytes;
    slot.group = kAbsent;
    run(id);
  }
  void on_evict(ExpertId id, Parts) override {
    leave(id);
    slots_.at(id).group = kAbsent;
  }
  std::string name() const override { return "marking"; }

 private:
  // Groups 0 and 1 are lists; with each phase the other one holds the marked experts.
  static constexpr int kAbsent = -1, kRunning = 2;
  struct Slot {
    Bytes bytes = 0;
    std::uint32_t position = 0;  // in its list
    std::int8_t group = kAbsent;
  };
  struct Drawn {
    ExpertId id;
    int group;
  };

  void run(ExpertId id) {  // marks it; it cannot be drawn while the event runs
    if (slots_.at(id).group == kRunning) return;
    leave(id);
    slots_.at(id).group = kRunning;
    running_.push_back(id);
  }
  void move(ExpertId id, int group) {
    leave(id);
    join(id, group);
  }
  void join(ExpertId id, int group) {
    Slot& slot = slots_.at(id);
    slot.group = static_cast<std::int8_t>(group);
    slot.position = static_cast<std::uint32_t>(groups_[group].size());
    groups_[group].push_back(id);
    group_bytes_[group] += slot.bytes;
  }
  void leave(ExpertId id) {  // removes the expert from its list, if it is in one
    const Slot& slot = slots_.at(id);
    if (slot.group == kAbsent || slot.group == kRunning) return;
    std::vector<ExpertId>& list = groups_[slot.group];
    const ExpertId last = list.back();
    list[slot.position] = last;
    slots_.at(last).position = slot.position;
    list.pop_back();
    group_bytes_[slot.group] -= slot.bytes;
  }

  Parts keep_;
  SplitMix64 random_;
  int marked_ = 0;
  std::vector<ExpertId> groups_[2];
  Bytes group_bytes_[2] = {0, 0};
  std::vector<ExpertId> running_;  // may name experts that have left since
  ExpertTable<Slot> slots_;
  std::vector<Drawn> drawn_;  // scratch of victims()
};

}  // namespace

std::unique_ptr<Cache> make_marking_cache(const CacheConfig& config) {
  return std::make_unique<MarkingCache>(config);
}

}  // namespace sluice::experts
