// The tables behind DALI's rows.
#pragma once

#include <string>

#include "reproduce/dali/dali_results.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

void add_dali_sections(const DaliResults& results, Report& report);
// Whether each of the paper's figures without numbers has the shape that it has there, in one line.
std::string shape_texts(const DaliResults& results);

}  // namespace sluice::reproduce
