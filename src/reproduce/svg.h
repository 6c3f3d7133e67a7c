// Plots as SVG text: self-contained, without scripts or fonts of their own, readable on light and dark pages.
// All numbers must be finite.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::reproduce {

struct PlotText {
  std::string title, x, y;  // names of the axes, with units
  std::string note;         // one line below; may be empty
};

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // error bar; equal to y: no bar
};
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // by x
};
// Lines with markers, error bars and a legend. `log_y` for positive values over several decades.
std::string line_chart(const PlotText& text, const std::vector<PlotSeries>& series, bool log_y = false);

struct PlotBar {
  std::string name;
  double value = 0, low = 0, high = 0;
};
std::string bar_chart(const PlotText& text, const std::vector<PlotBar>& bars);

// One column per category with stacked parts: values[part][column]. REQUIRES: one row per part, all of one
// length.
std::string stacked_chart(const PlotText& text, const std::vector<std::string>& parts,
                          const std::vector<std::vector<double>>& values);

struct PlotSpan {
  std::size_t row = 0, kind = 0;
  double begin = 0, end = 0;
  std::string label;  // drawn where there is room, and always shown as a tooltip
};
// Rows against time; the kind selects the colour. REQUIRES: every span belongs to one of the rows and kinds.
std::string gantt_chart(const PlotText& text, const std::vector<std::string>& rows,
                        const std::vector<std::string>& kinds, const std::vector<PlotSpan>& spans);

// Escapes text for an element or an attribute. Characters that XML 1.0 excludes: control characters vanish;
// U+FFFE, U+FFFF and each byte that is not UTF-8 become U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace sluice::reproduce
