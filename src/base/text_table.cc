#include "base/text_table.h"

#include <algorithm>

#include "base/wrapped_text.h"

namespace sluice {
namespace {

constexpr std::size_t kGap = 2;       // blanks between columns, and before what a list says
constexpr std::size_t kLeastGap = 1;  // blanks between columns where two are too many
constexpr std::size_t kBelow = 4;     // before what it says below a heading

using Row = std::vector<std::string>;

std::string padding(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text_columns(text)), ' ');
}

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], text_columns(row[i]));
  return widths;
}

std::size_t width_of(const std::vector<std::size_t>& widths, std::size_t gap) {
  std::size_t width = 0;
  for (const std::size_t each : widths) width += each;
  return width + gap * (widths.size() - std::min<std::size_t>(widths.size(), 1));
}

std::string side_by_side(const std::vector<Row>& rows, const std::vector<std::size_t>& widths,
                         std::size_t titles, std::size_t gap) {
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks = padding(row[i], widths[i]);
      if (i > 0) line.append(gap, ' ');
      line += i < titles ? row[i] + blanks : blanks + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string one_below_the_other(const std::vector<Row>& rows, std::size_t titles, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = titles; i < rows[0].size(); ++i) width = std::max(width, text_columns(rows[0][i]));
  std::string text;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    std::string title;
    for (std::size_t i = 0; i < titles; ++i) {
      if (rows[r][i].empty()) continue;
      if (!title.empty()) title += ", ";
      if (titles > 1) title += rows[0][i] + ' ';
      title += rows[r][i];
    }
    text += wrapped_text(title, columns) + '\n';
    for (std::size_t i = titles; i < rows[r].size(); ++i) {
      if (rows[r][i].empty()) continue;
      const std::string heading = std::string(kGap, ' ') + rows[0][i];
      if (kGap + width + kGap + text_columns(rows[r][i]) <= columns)
        text += heading + padding(rows[0][i], width) + std::string(kGap, ' ') + rows[r][i] + '\n';
      else
        text += heading + '\n' + std::string(kBelow, ' ') +
                wrapped_text(rows[r][i], columns, kBelow, kBelow) + '\n';
    }
  }
  return text;
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t columns,
                       std::size_t titles) {
  if (rows.empty()) return "";
  const std::vector<std::size_t> widths = widths_of(rows);
  for (const std::size_t gap : {kGap, kLeastGap})
    if (width_of(widths, gap) <= columns) return side_by_side(rows, widths, titles, gap);
  return one_below_the_other(rows, titles, columns);
}

MainColumns main_columns(const std::vector<std::vector<std::string>>& rows, std::size_t columns,
                         std::span<const std::size_t> dispensable) {
  if (rows.empty()) return {};
  const std::vector<std::size_t> all = widths_of(rows);
  std::vector<bool> kept(all.size(), true);
  const auto fits = [&] {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (kept[i]) widths.push_back(all[i]);
    return width_of(widths, kLeastGap) <= columns;
  };
  for (const std::size_t column : dispensable) {
    if (fits()) break;
    kept[column] = false;
  }
  if (!fits()) return {rows, {}};
  MainColumns main;
  for (const Row& row : rows) {
    main.rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i)
      if (kept[i]) main.rows.back().push_back(row[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!kept[i]) main.left_out.push_back(rows[0][i]);
  return main;
}

}  // namespace sluice
