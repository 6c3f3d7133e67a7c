// Figures side by side, as wide as a terminal takes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice {

// Lines of a table. `rows[0]` are the headings; all rows have as many cells. The first `titles` columns,
// which say what a row is about, are left-aligned, the others right-aligned; columns are as wide as their
// widest cell, with two blanks between them, or one where that makes them fit. A table wider than `columns`
// is drawn as a list instead: the titles of a row (behind their headings if there are several), and below
// them a line for each figure, behind its heading; or below it, where the figure does not fit beside it.
// A list leaves out empty figures.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t columns,
                       std::size_t titles = 1);

}  // namespace sluice
