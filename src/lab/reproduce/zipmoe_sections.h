// The sections under the rows of a report on ZipMoE: the order of the systems, conditions, and all figures of
// every comparison.
#pragma once

#include "lab/reproduce/report.h"
#include "lab/reproduce/zipmoe_results.h"
#include "lab/reproduce/zipmoe_runs.h"

namespace sluice::lab {

void add_zipmoe_sections(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report);

}  // namespace sluice::lab
