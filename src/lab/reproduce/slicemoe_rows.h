// The rows of SPEC §6.4 for SliceMoE: what the paper says beside what was found.
#pragma once

#include "lab/reproduce/report.h"
#include "lab/reproduce/slicemoe_results.h"

namespace sluice::lab {

// Appends those of slicemoe_row_ids(), in that order, and the sections with the figures behind them.
void add_slicemoe_rows(const SlicemoeResults& results, Report& report);

}  // namespace sluice::lab
