// Pictures of DALI's report: the ladder, the lanes of one layer, cosines, and hits over time.
#pragma once

#include "reproduce/dali/dali_results.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

void add_dali_pictures(const DaliResults& results, Report& report);

}  // namespace sluice::reproduce
