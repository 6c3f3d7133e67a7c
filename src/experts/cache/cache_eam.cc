// EAM: the expert that is expected to be used least leaves, according to the past activation matrix nearest
// to the running one; ties: the least recently used expert, then the lower id. MoE-Infinity's cache (arXiv
// 2401.14361); SPEC §1.10.
#include <algorithm>

#include "experts/cache/activation_matrix.h"
#include "experts/cache/cache_policies.h"

namespace sluice::experts {
namespace {

class EamCache final : public Cache {
 public:
  explicit EamCache(Parts keep) : keep_(keep) {}
  void on_step(const StepReport& report) override {
    history_.on_event(report.used);
    event_ = report.event;
    listed_ = false;
    for (const ExpertId id : report.used) {
      Entry& entry = entries_.at(id);
      entry.last_use = report.event + 1;
      if (entry.resident()) residents_[entry.place - 1].last_use = entry.last_use;
    }
  }
  Parts wanted(ExpertId) const override { return keep_; }

  void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) override {
    if (need == 0) return;
    if (!listed_) list_candidates(pinned);
    // The first experts in order that free enough: a heap with the last one on top.
    leaving_.clear();
    Bytes freed = 0;
    for (const Candidate& candidate : candidates_) {
      if (freed >= need && !(candidate < leaving_.front())) continue;
      leaving_.push_back(candidate);
      std::push_heap(leaving_.begin(), leaving_.end());
      freed += candidate.bytes;
      for (Bytes last; freed - (last = leaving_.front().bytes) >= need; freed -= last) {
        std::pop_heap(leaving_.begin(), leaving_.end());
        leaving_.pop_back();
      }
    }
    if (freed < need) return;
    std::sort_heap(leaving_.begin(), leaving_.end());
    for (const Candidate& it : leaving_) out.push_back({it.id, entries_.find(it.id)->parts});
  }

  void on_insert(ExpertId id, Parts parts, Bytes bytes) override {
    Entry& entry = entries_.at(id);
    if (entry.last_use == 0) entry.last_use = event_ + 1;
    if (!entry.resident()) {
      residents_.emplace_back();
      entry.place = residents_.size();
    }
    entry.parts = parts;
    residents_[entry.place - 1] = {id, bytes, entry.last_use, history_.predicted(id)};
  }
  void on_evict(ExpertId id, Parts parts) override {
    Entry& entry = entries_.at(id);
    entry.parts = entry.parts - parts;
    if (!entry.resident() || !entry.parts.empty()) return;
    entries_.at(residents_.back().id).place = entry.place;
    residents_[entry.place - 1] = residents_.back();
    residents_.pop_back();
    entry.place = 0;
    std::erase_if(candidates_, [&](const Candidate& it) { return it.id == id; });
  }
  std::string name() const override { return "eam"; }

 private:
  struct Entry {
    std::uint64_t last_use = 0;  // event + 1
    std::size_t place = 0;       // 1 + its position in residents_; 0: not resident
    Parts parts;
    bool resident() const { return place != 0; }
  };
  struct Resident {
    ExpertId id;
    Bytes bytes = 0;
    std::uint64_t last_use = 0;
    double predicted = 0;  // as of generation_
  };
  struct Candidate {
    double predicted;
    std::uint64_t last_use;
    ExpertId id;
    Bytes bytes;
    bool operator<(const Candidate& b) const {
      if (predicted != b.predicted) return predicted < b.predicted;
      return last_use != b.last_use ? last_use < b.last_use : id < b.id;
    }
  };

  // Lists the experts that may leave during the running event. Their order changes only between events.
  void list_candidates(const PinnedView& pinned) {
    if (generation_ != history_.generation()) {
      generation_ = history_.generation();
      for (Resident& it : residents_) it.predicted = history_.predicted(it.id);
    }
    candidates_.clear();
    for (const Resident& it : residents_)
      if (!pinned.pinned(it.id)) candidates_.push_back({it.predicted, it.last_use, it.id, it.bytes});
    listed_ = true;
  }

  Parts keep_;
  std::uint64_t event_ = 0, generation_ = 0;
  ActivationHistory history_;
  ExpertTable<Entry> entries_;
  std::vector<Resident> residents_;    // unordered
  std::vector<Candidate> candidates_;  // the running event's, if listed_
  bool listed_ = false;
  std::vector<Candidate> leaving_;  // scratch
};

}  // namespace

std::unique_ptr<Cache> make_eam_cache(const CacheConfig& config) {
  return std::make_unique<EamCache>(config.keep);
}

}  // namespace sluice::experts
