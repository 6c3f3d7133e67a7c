#include "serve/engine/engine_board.h"

#include <utility>

#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "serve/engine/engine_json.h"
#include "serve/engine/engine_metrics.h"
#include "store/checkpoint.h"

namespace sluice::serve {
namespace {

constexpr auto kBoardPause = std::chrono::milliseconds(100), kSnapshotPause = std::chrono::milliseconds(100),
               kStatsPause = std::chrono::milliseconds(500);

// What does not change.
ExpertBoard empty_board(const engine::RunReport& run) {
  const model::ModelConfig& config = run.model.config;
  ExpertBoard board;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    if (config.sparse[layer]) board.layer_ids.push_back(layer);
  board.states = run.checkpoint.slices()                            ? ""
                 : run.checkpoint.family() == store::Family::kSplit ? "FCSEM"
                                                                    : "FM";
  if (run.model.experts.empty()) return board;
  const experts::ExpertBytes bytes = run.experts.sizes().bytes({0, 0});
  using experts::Part;
  const auto add = [&](const char* name, experts::Parts parts) {
    if (const Bytes size = bytes.of(parts); size > 0) board.expert_bytes.emplace_back(name, size);
  };
  if (run.checkpoint.slices()) {
    add("msb", Part::kMsb);
    add("msb+lsb", Part::kMsb | Part::kLsb);
  } else {
    add("F", Part::kFull);
    if (board.states == "FCSEM") {
      add("C", Part::kSm | Part::kExp);
      add("S", Part::kSm);
      add("E", Part::kExp);
    }
  }
  return board;
}

}  // namespace

EngineBoard::EngineBoard(engine::Engine& engine, Json plan)
    : engine_(engine),
      run_(engine.report()),
      plan_(std::move(plan)),
      watch_(run_.model.config.sparse_layers(), run_.model.config.moe.experts),
      board_(empty_board(run_)) {}

void EngineBoard::publish(const engine::BatchLoad& load, bool idle) {
  const Clock::time_point now = Clock::now();
  if (idle || now - snapshot_at_ >= kSnapshotPause) {
    snapshot_at_ = now;
    EngineSnapshot snapshot = take_snapshot(engine_, load, watch_);
    std::string stats;
    if (stats_from_.at == Clock::time_point{} || now - stats_from_.at >= kStatsPause) {
      const double seconds = std::chrono::duration<double>(now - start_).count();
      stats = sluice::serve::stats_json(stats_from_, snapshot, seconds, memory_json(run_)).dump();
      stats_from_ = snapshot;
    }
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
    if (!stats.empty()) stats_ = std::move(stats);
  }
  const bool due = watched() && now - board_at_ >= kBoardPause;
  if (!due && !idle && !board_wanted_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  board_at_ = now;
  watch_.fill(run_, board_);
}

ExpertBoard EngineBoard::experts() {
  board_wanted_ = true;
  const std::lock_guard lock(mutex_);
  ExpertBoard board = board_;
  const float cooling = ExpertWatch::cooling(Clock::now() - board_at_);  // an engine at rest fills nothing
  for (std::uint8_t& heat : board.heat) heat = static_cast<std::uint8_t>(static_cast<float>(heat) * cooling);
  return board;
}

std::string EngineBoard::stats_json() const {
  const std::lock_guard lock(mutex_);
  return stats_.empty() ? "{}" : stats_;
}

std::string EngineBoard::plan_json() const {
  Json plan = plan_;
  plan["memory"] = memory_json(run_);
  return plan.dump();
}

void EngineBoard::collect(MetricSet& metrics) {
  board_wanted_ = true;
  {
    const std::lock_guard lock(mutex_);
    collect_engine(snapshot_, board_, metrics);
  }
  metrics.add("iteration_tokens_total", watch_.tokens().state());
  metrics.add("batch_sequences", watch_.sequences().state());
  collect_memory(run_, metrics);
}

}  // namespace sluice::serve
