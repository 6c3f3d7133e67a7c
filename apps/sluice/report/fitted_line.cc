#include "report/fitted_line.h"

#include <algorithm>

namespace sluice::app {

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

std::string fitted_line(std::vector<LinePart> parts, std::string_view between, std::size_t columns) {
  std::erase_if(parts, [](const LinePart& part) { return part.text.empty(); });
  for (; !parts.empty(); parts.erase(std::ranges::max_element(parts, {}, &LinePart::rank))) {
    std::string line;
    for (const LinePart& part : parts) {
      if (!line.empty()) line += between;
      line += part.text;
    }
    if (columns_of(line) <= columns) return line;
  }
  return {};
}

}  // namespace sluice::app
