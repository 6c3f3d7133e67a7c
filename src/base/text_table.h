// Figures side by side, as wide as a terminal takes them.
#pragma once

#include <cstddef>
#include <span>
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

// A table without the columns that it has no room for, and their headings.
struct MainColumns {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> left_out;
};

// Leaves columns of `rows` out, by their numbers in `dispensable` and in its order, until the table fits.
// None are left out where it does not fit without all of them: text_table() then draws a list.
MainColumns main_columns(const std::vector<std::vector<std::string>>& rows, std::size_t columns,
                         std::span<const std::size_t> dispensable);

}  // namespace sluice
