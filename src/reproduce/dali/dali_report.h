// What DALI's report is made of: rows with the paper's figures, the tables behind them, pictures.
#pragma once

#include <string>

#include "reproduce/dali/dali_results.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

void add_dali_rows(const DaliResults& results, Report& report);
void add_dali_sections(const DaliResults& results, Report& report);
// Whether each of the paper's figures without numbers has the shape that it has there, in one line.
std::string shape_texts(const DaliResults& results);
void add_dali_pictures(const DaliResults& results, Report& report);

}  // namespace sluice::reproduce
