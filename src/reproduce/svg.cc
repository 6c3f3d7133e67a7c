#include "reproduce/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::reproduce {
namespace {

constexpr double kWidth = 760, kLeft = 84, kRight = 28, kTop = 56;
constexpr double kTickRoom = 30;  // for a label below an axis
// Okabe and Ito's colours, which colour-blind readers can also tell apart.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#999999", "#7f6000"};
constexpr std::size_t kColourCount = std::size(kColours);

const char* colour(std::size_t index) { return kColours[index % kColourCount]; }

std::string number(double value) {
  if (value == 0) return "0";
  if (std::abs(value) >= 1e5 || std::abs(value) < 1e-3) return fmt::format("{:.1e}", value);
  std::string text = fmt::format("{:.3g}", value);
  if (text.find('e') != std::string::npos) text = fmt::format("{:.0f}", value);
  return text;
}

// 1, 2 or 5 times a power of ten, so that about `count` steps reach `range`.
double nice_step(double range, int count) {
  const double rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

std::string label(double x, double y, std::string_view text, std::string_view anchor,
                  std::string_view extra = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, extra,
                     xml_escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view rest) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     rest);
}

std::string page(const PlotText& text, double height, double plot_bottom, const std::string& body) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n"
      "<title>{2}</title>\n"
      "<style>text{{font:13px "
      "system-ui,sans-serif;fill:#222}}.h{{font-size:16px;font-weight:600}}.s{{font-size:11.5px;fill:#555}}"
      ".b{{fill:#fff}}.g{{stroke:#ddd}}.a{{stroke:#888}}.w{{fill:#fff;font-size:11px}}"
      "@media(prefers-color-scheme:dark){{text{{fill:#e6e6e6}}.s{{fill:#aaa}}.b{{fill:#16181c}}.g{{stroke:#"
      "333}}.w{{fill:#fff}}}}</style>\n"
      "<rect class=\"b\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n",
      kWidth, height, xml_escaped(text.title));
  svg += label(kLeft, 28, text.title, "start", " class=\"h\"");
  svg += label((kLeft + kWidth - kRight) / 2, plot_bottom + 38, text.x, "middle");
  if (!text.y.empty())
    svg += label(20, (kTop + plot_bottom) / 2, text.y, "middle",
                 fmt::format(" transform=\"rotate(-90 20 {:.1f})\"", (kTop + plot_bottom) / 2));
  if (!text.note.empty()) svg += label(kLeft, height - 12, text.note, "start", " class=\"s\"");
  return svg + body + "</svg>\n";
}

// Draws names beside squares, in as many lines as they need, from `y` down. Returns the number of lines.
std::string legend(const std::vector<std::string>& names, double y, int& lines) {
  std::string body;
  double x = kLeft;
  lines = 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double width = 30 + 7.4 * static_cast<double>(names[i].size());
    if (x + width > kWidth - kRight && x > kLeft) {
      x = kLeft;
      ++lines;
    }
    const double at = y + 18 * (lines - 1);
    body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\n",
                        x, at - 10, colour(i));
    body += label(x + 17, at, names[i], "start");
    x += width;
  }
  return body;
}

struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool log = false;
  double at(double value) const {
    const auto scale = [&](double v) { return log ? std::log10(v) : v; };
    return from + (to - from) * (scale(value) - scale(low)) / (scale(high) - scale(low));
  }
};

std::string y_ticks(const Axis& axis) {
  std::string body;
  const auto tick = [&](double value) {
    body += line(kLeft, axis.at(value), kWidth - kRight, axis.at(value), "class=\"g\"");
    body += label(kLeft - 8, axis.at(value) + 4, number(value), "end");
  };
  if (axis.log) {
    const bool few = std::log10(axis.high / axis.low) < 2.5;
    for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if ((few || factor == 1) && factor * power >= axis.low * .999 && factor * power <= axis.high * 1.001)
          tick(factor * power);
  } else {
    const double step = nice_step(axis.high - axis.low, 6);
    for (int i = 0; axis.low + i * step <= axis.high * 1.0001; ++i) tick(axis.low + i * step);
  }
  return body;
}

std::string error_bar(double x, double low, double high, std::string_view stroke) {
  const std::string rest = fmt::format("stroke=\"{}\" stroke-width=\"1.3\"", stroke);
  return line(x, low, x, high, rest) + line(x - 4, low, x + 4, low, rest) +
         line(x - 4, high, x + 4, high, rest);
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const tokenizer::CodePoint c = tokenizer::decode_utf8(text);
    const std::string_view character = text.substr(0, std::max(1u, c.length));
    text.remove_prefix(character.size());
    if (c.length == 0 || c.value == 0xFFFE || c.value == 0xFFFF)
      out += tokenizer::kReplacementCharacter;
    else if (c.value == '&')
      out += "&amp;";
    else if (c.value == '<')
      out += "&lt;";
    else if (c.value == '>')
      out += "&gt;";
    else if (c.value == '"')
      out += "&quot;";
    else if (c.value >= 0x20 || c.value == '\t' || c.value == '\n')
      out += character;
  }
  return out;
}

std::string line_chart(const PlotText& text, const std::vector<PlotSeries>& series, bool log_y) {
  double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = 0;
  for (const PlotSeries& one : series)
    for (const PlotPoint& point : one.points) {
      x_low = std::min(x_low, point.x);
      x_high = std::max(x_high, point.x);
      y_low = std::min({y_low, point.y, point.low});
      y_high = std::max({y_high, point.y, point.high});
    }
  if (x_low > x_high) x_low = 0, x_high = 1, y_low = 1, y_high = 2;
  if (x_low == x_high) x_low -= 1, x_high += 1;
  if (y_high <= 0) y_high = 1;
  if (log_y) y_low = std::max(y_low, y_high * 1e-6);
  const double bottom = kTop + 300;
  const Axis x{x_low, x_high, kLeft + 24, kWidth - kRight - 24};
  const Axis y{log_y ? y_low / 1.25 : 0, y_high * (log_y ? 1.25 : 1.06), bottom, kTop, log_y};

  std::string body = y_ticks(y);
  body += line(kLeft, bottom, kWidth - kRight, bottom, "class=\"a\"");
  std::vector<double> ticks;
  for (const PlotSeries& one : series)
    for (const PlotPoint& point : one.points) ticks.push_back(point.x);
  std::ranges::sort(ticks);
  ticks.erase(std::ranges::unique(ticks).begin(), ticks.end());
  // Position of the last label; a label that would touch it is left out.
  double labelled = -kTickRoom;
  for (const double tick : ticks) {
    if (x.at(tick) - labelled < kTickRoom) continue;
    labelled = x.at(tick);
    body += label(labelled, bottom + 18, number(tick), "middle");
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < series.size(); ++i) {
    names.push_back(series[i].name);
    std::string path;
    for (const PlotPoint& point : series[i].points) {
      const auto clamp = [&](double value) {
        return y.at(std::clamp(value, std::max(y.low, log_y ? y.low : 0.0), y.high));
      };
      path += fmt::format("{:.1f},{:.1f} ", x.at(point.x), clamp(point.y));
      body += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{}: {}</title></circle>\n",
          x.at(point.x), clamp(point.y), colour(i), xml_escaped(series[i].name), number(point.y));
      if (point.low != point.high)
        body += error_bar(x.at(point.x), clamp(point.low), clamp(point.high), colour(i));
    }
    body += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path,
                        colour(i));
  }
  int lines = 0;
  body += legend(names, bottom + 66, lines);
  return page(text, bottom + 66 + 18 * lines + 18, bottom, body);
}

std::string bar_chart(const PlotText& text, const std::vector<PlotBar>& bars) {
  double most = 0;
  for (const PlotBar& bar : bars) most = std::max({most, bar.value, bar.high});
  const double bottom = kTop + 280;
  const Axis y{0, most > 0 ? most * 1.12 : 1, bottom, kTop};
  std::string body = y_ticks(y);
  body += line(kLeft, bottom, kWidth - kRight, bottom, "class=\"a\"");
  const double slot = (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const PlotBar& bar = bars[i];
    const double centre = kLeft + slot * (static_cast<double>(i) + .5), width = std::min(slot * .6, 80.0);
    body += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"{}\"/>\n",
        centre - width / 2, y.at(bar.value), width, bottom - y.at(bar.value), colour(i));
    if (bar.low != bar.high) body += error_bar(centre, y.at(bar.low), y.at(bar.high), "#555");
    body += label(centre + (bar.low != bar.high ? 8 : 0),
                  y.at(std::max(bar.value, bar.low != bar.high ? bar.high : bar.value)) - 6,
                  number(bar.value), bar.low != bar.high ? "start" : "middle");
    body += label(centre, bottom + 18, bar.name, "middle", " class=\"s\"");
  }
  return page(text, bottom + 78, bottom, body);
}

std::string stacked_chart(const PlotText& text, const std::vector<std::string>& parts,
                          const std::vector<std::vector<double>>& values) {
  SLUICE_CHECK(values.size() == parts.size(), fmt::format("{} rows, {} parts", values.size(), parts.size()));
  const std::size_t columns = values.empty() ? 0 : values.front().size();
  for (const std::vector<double>& part : values)
    SLUICE_CHECK(part.size() == columns, fmt::format("{} and {} columns", columns, part.size()));
  double most = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    double sum = 0;
    for (const std::vector<double>& part : values) sum += part[c];
    most = std::max(most, sum);
  }
  const double bottom = kTop + 280;
  const Axis y{0, most > 0 ? most * 1.05 : 1, bottom, kTop};
  std::string body = y_ticks(y);
  const double slot = (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, columns));
  const std::size_t every = std::max<std::size_t>(1, (columns + 15) / 16);
  for (std::size_t c = 0; c < columns; ++c) {
    double sum = 0;
    const double x = kLeft + slot * static_cast<double>(c);
    for (std::size_t p = 0; p < values.size(); ++p) {
      const double value = values[p][c];
      if (value <= 0) continue;
      body += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
          x + slot * .08, y.at(sum + value), slot * .84, y.at(sum) - y.at(sum + value), colour(p));
      sum += value;
    }
    if (c % every == 0) body += label(x + slot / 2, bottom + 18, std::to_string(c), "middle");
  }
  body += line(kLeft, bottom, kWidth - kRight, bottom, "class=\"a\"");
  int lines = 0;
  body += legend(parts, bottom + 66, lines);
  return page(text, bottom + 66 + 18 * lines + 18, bottom, body);
}

std::string gantt_chart(const PlotText& text, const std::vector<std::string>& rows,
                        const std::vector<std::string>& kinds, const std::vector<PlotSpan>& spans) {
  double most = 0;
  for (const PlotSpan& span : spans) {
    SLUICE_CHECK(span.row < rows.size() && span.kind < kinds.size(),
                 fmt::format("row {} of {}, kind {} of {}", span.row, rows.size(), span.kind, kinds.size()));
    most = std::max(most, span.end);
  }
  const double row_height = 26, bottom = kTop + row_height * static_cast<double>(rows.size());
  const Axis x{0, most > 0 ? most : 1, kLeft, kWidth - kRight};
  std::string body;
  const double step = nice_step(x.high, 8);
  for (int i = 0; i * step <= x.high * 1.0001; ++i) {
    body += line(x.at(i * step), kTop, x.at(i * step), bottom, "class=\"g\"");
    body += label(x.at(i * step), bottom + 18, number(i * step), "middle");
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    body += label(kLeft - 8, kTop + row_height * (static_cast<double>(r) + .5) + 4, rows[r], "end");
  for (const PlotSpan& span : spans) {
    const double left = x.at(span.begin), width = std::max(.6, x.at(span.end) - left);
    const double top = kTop + row_height * static_cast<double>(span.row) + 3;
    body += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" rx=\"2\" fill=\"{}\" "
        "fill-opacity=\".92\"><title>{} {}</title></rect>\n",
        left, top, width, row_height - 6, colour(span.kind), xml_escaped(kinds[span.kind]),
        xml_escaped(span.label));
    if (width > 7.0 * static_cast<double>(span.label.size()) + 4)
      body += label(left + width / 2, top + 14, span.label, "middle", " class=\"w\"");
  }
  body += line(kLeft, bottom, kWidth - kRight, bottom, "class=\"a\"");
  int lines = 0;
  body += legend(kinds, bottom + 66, lines);
  return page(text, bottom + 66 + 18 * lines + 18, bottom, body);
}

}  // namespace sluice::reproduce
