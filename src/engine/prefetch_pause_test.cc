// Read-ahead that costs more than it saves is paused; only the run's statistics show it.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/prefetch_testing.h"
#include "engine/run_report.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "experts/cache/residency.h"
#include "fetch/expert_layout.h"
#include "fetch/memory/expert_store.h"
#include "fetch/memory/fetch_counters.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

// A disk as slow as a layer: the reads of an expert complete once the event of its layer has begun. So all
// reads ahead are still on their way when they turn out to be useless. It works without waiting: it watches
// the engine.
class SlowDisk final : public RoutingObserver {
 public:
  SlowDisk(const store::Checkpoint& checkpoint, const model::Model& model)
      : layers_(model.config.sparse_layers()) {
    for (const model::ExpertPieces& pieces : model.experts) {
      std::vector<store::StoredPiece> stored;
      for (const store::Piece& piece : pieces.all()) stored.push_back(checkpoint.locate(piece));
      for (const fetch::FileRun& run : fetch::lay_out_expert(stored).base.runs)
        layer_at_[{checkpoint.weight_files()[run.file], run.offset}] = pieces.layer;
    }
  }

  std::unique_ptr<DiskReader> wrap(std::unique_ptr<DiskReader> inner) {
    if (wrapped_++ > 0) return inner;  // rows of the embedding
    return make_faulty_reader(
        std::move(inner),
        [this](const DiskRead& read) {
          const std::lock_guard lock(mutex_);
          const auto found = layer_at_.find({read.file->path(), read.offset});
          if (found != layer_at_.end()) held_.push_back(found->second);
          return 0;
        },
        [this](DiskCall call) {
          if (call == DiskCall::kWait) hold();
          return 0;
        });
  }

  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision&) override {
    const std::lock_guard lock(mutex_);
    next_layer_ = (sparse_layer + 1) % layers_;
    changed_.notify_all();
  }
  // Lets the last event's read-ahead complete.
  void finish() {
    const std::lock_guard lock(mutex_);
    next_layer_.reset();
    changed_.notify_all();
  }

 private:
  void hold() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return !next_layer_ ||
             std::ranges::none_of(held_, [&](std::size_t layer) { return layer == *next_layer_; });
    });
    held_.clear();
  }

  const std::size_t layers_;
  std::map<std::pair<std::string, Bytes>, std::size_t> layer_at_;  // by file and offset of a read
  int wrapped_ = 0;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::vector<std::size_t> held_;  // layers of reads given to the disk since the last wait
  // Layer whose event has not begun; empty before the first.
  std::optional<std::size_t> next_layer_;
};

class PrefetchPause : public PrefetchTest {
 protected:
  PrefetchPause() : PrefetchTest(64) {}

  static constexpr std::size_t kTokens = 40;
  static std::vector<std::uint64_t> hashes(Engine& engine) {
    std::vector<std::uint64_t> all;
    const auto sequence = engine.new_sequence();
    for (std::size_t i = 0; i < kTokens; ++i) all.push_back(next(engine, *sequence, i));
    return all;
  }
};

TEST_F(PrefetchPause, GuessesThatLoseArePausedAndTheTextIsTheSame) {
  std::vector<std::uint64_t> expected;
  {
    EngineOptions none = options_;
    none.prefetch = "none";
    Engine engine(*checkpoint_, model_, resolve(none, *checkpoint_, model_));
    expected = hashes(engine);
    EXPECT_EQ(engine.statistics().prefetch_paused, 0u);
    options_.cache_bytes = 24 * engine.report().experts.sizes().bytes({0, 0}).full;
  }
  SlowDisk disk(*checkpoint_, model_);
  options_.prefetch = "all-next";  // 64 experts of a layer, of which a token uses 4
  options_.fetch.wrap_reader = [&](std::unique_ptr<DiskReader> inner) { return disk.wrap(std::move(inner)); };
  Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
  struct Finish {  // before the engine waits for its reads
    SlowDisk& disk;
    ~Finish() { disk.finish(); }
  } finish{disk};
  engine.observe(&disk);
  EXPECT_EQ(hashes(engine), expected);
  const std::size_t events = kTokens * model_.config.sparse_layers();
  EXPECT_GT(engine.statistics().prefetch_paused, events / 2);
  EXPECT_LT(engine.statistics().prefetch_paused, events);
  const fetch::PrefetchCounters count = engine.report().experts.counters().prefetch;
  EXPECT_GT(count.delay_bytes, count.used_bytes);
}

}  // namespace
}  // namespace sluice::engine
