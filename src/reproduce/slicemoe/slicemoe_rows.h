// SliceMoE's rows of SPEC §6.4: the paper's values beside ours.
#pragma once

#include "reproduce/report.h"
#include "reproduce/slicemoe/slicemoe_results.h"

namespace sluice::reproduce {

// Appends the rows of slicemoe_row_ids(), in that order, and the sections with the figures behind them.
void add_slicemoe_rows(const SlicemoeResults& results, Report& report);

}  // namespace sluice::reproduce
