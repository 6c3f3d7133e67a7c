// The pictures of SMoE's report.
#pragma once

#include "reproduce/report.h"
#include "reproduce/smoe/smoe_results.h"

namespace sluice::reproduce {

void add_smoe_pictures(const SmoeResults& results, Report& report);

}  // namespace sluice::reproduce
