// One line of a terminal, for as many columns as there are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

struct LinePart {
  std::string text;  // an empty one is left out
  int rank = 0;      // 0: the last to be left out
};

// The parts in their order, `between` two of them. While they take more than `columns` columns, the part of
// the highest rank is left out as a whole; not even one may fit. Every character is of one column.
std::string fitted_line(std::vector<LinePart> parts, std::string_view between, std::size_t columns);

// Columns of a text in UTF-8; each character takes one.
std::size_t columns_of(std::string_view text);

}  // namespace sluice::app
