// The sections under the rows of a report on ZipMoE: the order of the systems, conditions, and all figures of
// every comparison.
#pragma once

#include "reproduce/report.h"
#include "reproduce/zipmoe/zipmoe_results.h"
#include "reproduce/zipmoe/zipmoe_runs.h"

namespace sluice::reproduce {

void add_zipmoe_sections(const ZipmoeRuns& runs, const ZipmoeResults& results, Report& report);

}  // namespace sluice::reproduce
