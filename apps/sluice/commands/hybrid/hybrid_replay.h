// `sluice simulate` with a host and a device: what DALI and its baselines would have decided for recorded
// routing, and how long that would have taken on a modelled machine.
#pragma once

#include "commands/hybrid/hybrid_flags.h"
#include "commands/hybrid/hybrid_rows.h"

namespace sluice::app {

// Prints a table, or one JSON object. Every combination of machine, preset, cache, slots and batch is a row.
void hybrid_replay(const HybridRequest& request, const HybridFlags& flags);

}  // namespace sluice::app
