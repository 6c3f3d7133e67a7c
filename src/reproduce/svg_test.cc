// Plots are XML for any names and numbers, and show their input.
#include "reproduce/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>

#include "reproduce/well_formed.h"

namespace sluice::reproduce {
namespace {

using sluice::testing::xml_fault;
using ::testing::HasSubstr;

const PlotText kText{"A & B <\"ratio\">", "x > 0", "y", "a note\x01 & more"};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

void expect_plot(const std::string& svg) {
  EXPECT_EQ(xml_fault(svg), "") << svg.substr(0, 2000);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("\"inf"), std::string::npos);
}

TEST(WellFormed, TellsWhatIsNot) {
  EXPECT_EQ(xml_fault("<a b=\"1\"><c/>x &amp; y</a>\n"), "");
  for (const char* wrong : {"", "x", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a b=\"1\" b=\"2\"/>", "<a b=1/>",
                            "<a>&</a>", "<a b=\"<\"/>", "<a b=\"&\"/>", "<a", "<a b=\"", "<>"})
    EXPECT_NE(xml_fault(wrong), "") << wrong;
}

TEST(Svg, EscapesNamesAndDropsControlCharacters) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\"\x02"), "a&lt;b&gt;&amp;&quot;c&quot;");
  const std::string instead = "\xEF\xBF\xBD";  // U+FFFD
  EXPECT_EQ(xml_escaped("a\xFFz"), "a" + instead + "z");
  EXPECT_EQ(xml_escaped("\xE4\xB8\xAD\xE4\xB8"), "\xE4\xB8\xAD" + instead + instead);  // cut off
  EXPECT_EQ(xml_escaped("\xED\xA0\x80"), instead + instead + instead);                 // a surrogate
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBE\xEF\xBF\xBF"), instead + instead);
  EXPECT_EQ(xml_escaped("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  const std::string svg = bar_chart(kText, {{"<bar>", 1, 1, 1}});
  expect_plot(svg);
  EXPECT_THAT(svg, HasSubstr("A &amp; B &lt;"));
  EXPECT_THAT(svg, HasSubstr("&lt;bar&gt;"));
}

TEST(Svg, LineChartHasEveryPointAndErrorBar) {
  const std::vector<PlotSeries> series = {{"one", {{1, 10, 8, 12}, {2, 5, 5, 5}}},
                                          {"two", {{1, 100, 90, 120}}}};
  for (const bool log : {false, true}) {
    const std::string svg = line_chart(kText, series, log);
    expect_plot(svg);
    EXPECT_EQ(count(svg, "<circle"), 3u);
    EXPECT_EQ(count(svg, "<polyline"), 2u);
    EXPECT_EQ(count(svg, "stroke-width=\"1.3\""), 6u);  // two bars of three strokes
  }
}

TEST(Svg, LargerValuesAreHigherUp) {
  const auto heights = [](const std::string& svg) {
    std::vector<double> list;
    const std::regex circle("<circle cx=\"[^\"]*\" cy=\"([^\"]*)\"");
    for (std::sregex_iterator it(svg.begin(), svg.end(), circle), end; it != end; ++it)
      list.push_back(std::stod((*it)[1]));
    return list;
  };
  for (const bool log : {false, true}) {
    const auto y =
        heights(line_chart(kText, {{"s", {{0, 1, 1, 1}, {1, 10, 10, 10}, {2, 100, 100, 100}}}}, log));
    ASSERT_EQ(y.size(), 3u);
    EXPECT_GT(y[0], y[1]);
    EXPECT_GT(y[1], y[2]);
    if (log) {
      EXPECT_NEAR(y[0] - y[1], y[1] - y[2], .2);
    } else {
      EXPECT_NEAR((y[1] - y[2]) / (y[0] - y[1]), 10, .1);
    }
  }
}

TEST(Svg, EmptyAndExtremeInputIsStillAPlot) {
  expect_plot(line_chart(kText, {}));
  expect_plot(line_chart(kText, {{"none", {}}}, true));
  expect_plot(line_chart(kText, {{"zero", {{1, 0, 0, 0}}}}, true));
  expect_plot(bar_chart(kText, {}));
  expect_plot(stacked_chart(kText, {}, {}));
  expect_plot(stacked_chart(kText, {"a"}, {{0, 0}}));
  expect_plot(gantt_chart(kText, {}, {}, {}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 50; ++i) {
    const auto value = [&] { return std::pow(10, static_cast<double>(random() % 24) - 12); };
    std::vector<PlotSeries> series(1 + random() % 4);
    for (PlotSeries& one : series)
      for (std::uint64_t p = random() % 6; p > 0; --p)
        one.points.push_back({value(), value(), value(), value()});
    SCOPED_TRACE(i);
    expect_plot(line_chart(kText, series, i % 2 == 0));
  }
}

TEST(Svg, PilesAndSpans) {
  const std::string piled = stacked_chart(kText, {"a", "b"}, {{1, 2, 0}, {3, 0, 0}});
  expect_plot(piled);
  EXPECT_EQ(count(piled, "<rect x="), 3u + 2u);  // values above 0, squares of the legend
  const std::string gantt = gantt_chart(kText, {"disk", "thread 0"}, {"read", "decode"},
                                        {{0, 0, 0, 1, "e1"}, {1, 1, 1, 3, "e<1>"}});
  expect_plot(gantt);
  EXPECT_THAT(gantt, HasSubstr("<title>decode e&lt;1&gt;</title>"));
}

TEST(Svg, RaggedInputIsACallersMistake) {
  EXPECT_DEATH(stacked_chart(kText, {"a", "b"}, {{1, 2}, {3}}), "2 and 1 columns");
  EXPECT_DEATH(stacked_chart(kText, {"a"}, {{1, 2}, {3, 4}}), "2 rows, 1 parts");
  EXPECT_DEATH(gantt_chart(kText, {"r"}, {"k"}, {{1, 0, 0, 1, ""}}), "row 1 of 1");
  EXPECT_DEATH(gantt_chart(kText, {"r"}, {"k"}, {{0, 2, 0, 1, ""}}), "kind 2 of 1");
}

TEST(Svg, LabelsBelowAnAxisDoNotTouch) {
  std::vector<PlotPoint> points;
  for (int i = 0; i <= 100; ++i) points.push_back({static_cast<double>(i), 1, 1, 1});
  const std::string svg = line_chart(kText, {{"a", points}});
  const std::regex label("<text x=\"([0-9.]+)\" y=\"374.0\" text-anchor=\"middle\">");
  double before = -1e9;
  std::size_t labels = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at, ++labels) {
    const double x = std::stod((*at)[1].str());
    EXPECT_GE(x - before, 29.9);
    before = x;
  }
  EXPECT_GT(labels, 10u);
  EXPECT_LT(labels, 30u);
}

}  // namespace
}  // namespace sluice::reproduce
