// The tables behind the rows of SMoE's report.
#pragma once

#include "reproduce/report.h"
#include "reproduce/smoe/smoe_results.h"

namespace sluice::reproduce {

void add_smoe_sections(const SmoeResults& results, Report& report);

}  // namespace sluice::reproduce
