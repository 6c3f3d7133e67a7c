// What SMoE's report is made of: rows with the paper's figures, the tables behind them, pictures.
#pragma once

#include "reproduce/report.h"
#include "reproduce/smoe/smoe_results.h"

namespace sluice::reproduce {

void add_smoe_rows(const SmoeResults& results, Report& report);
void add_smoe_sections(const SmoeResults& results, Report& report);
void add_smoe_pictures(const SmoeResults& results, Report& report);

}  // namespace sluice::reproduce
