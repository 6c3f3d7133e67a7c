// ZipMoE's rows of SPEC §6.1: the paper's values beside ours.
#pragma once

#include "reproduce/report.h"
#include "reproduce/zipmoe/zipmoe_results.h"
#include "reproduce/zipmoe/zipmoe_runs.h"

namespace sluice::reproduce {

// Appends the rows of zipmoe_row_ids(), in that order.
void add_zipmoe_rows(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report);

}  // namespace sluice::reproduce
