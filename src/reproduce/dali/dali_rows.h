// The rows and tables of DALI's report.
#pragma once

#include "reproduce/dali/dali_results.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

void add_dali_rows(const DaliResults& results, Report& report);

}  // namespace sluice::reproduce
