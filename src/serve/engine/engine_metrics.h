// The metrics that the engine knows, by the names of metric_table.cc.
#pragma once

#include <string>

#include "engine/run_report.h"
#include "serve/backend.h"
#include "serve/engine/engine_snapshot.h"
#include "serve/metric_set.h"

namespace sluice::serve {

void collect_engine(const EngineSnapshot& now, const ExpertBoard& board, MetricSet& metrics);
// Accounts, and what does not change. May be called by any thread.
void collect_memory(const engine::RunReport& run, MetricSet& metrics);

}  // namespace sluice::serve
