// The rows of SPEC §6.1 for ZipMoE: what the paper says beside what was found.
#pragma once

#include "lab/reproduce/report.h"
#include "lab/reproduce/zipmoe_results.h"
#include "lab/reproduce/zipmoe_runs.h"

namespace sluice::lab {

// Appends those of zipmoe_row_ids(), in that order.
void add_zipmoe_rows(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report);

}  // namespace sluice::lab
