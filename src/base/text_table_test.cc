#include "base/text_table.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

const std::vector<std::vector<std::string>> kRows = {
    {"cache", "capacity", "hit %"}, {"lru", "8", "61.5"}, {"belady", "16", "70.25"}};

TEST(TextTable, StandsSideBySideWhereItFits) {
  EXPECT_EQ(text_table(kRows, 23, 1),
            "cache   capacity  hit %\n"
            "lru            8   61.5\n"
            "belady        16  70.25\n");
  EXPECT_EQ(text_table(kRows, 22, 1),
            "cache  capacity hit %\n"
            "lru           8  61.5\n"
            "belady       16 70.25\n");
  EXPECT_EQ(text_table({{"a", "µ"}, {"b", "12"}}, 80), "a   µ\nb  12\n");
  EXPECT_EQ(text_table({}, 80), "");
}

TEST(TextTable, IsAListWhereItDoesNotFit) {
  EXPECT_EQ(text_table(kRows, 20, 1),
            "lru\n"
            "  capacity  8\n"
            "  hit %     61.5\n"
            "belady\n"
            "  capacity  16\n"
            "  hit %     70.25\n");
  EXPECT_EQ(text_table({{"a", "b", "hit %", "miss %", "evicted"}, {"x", "y", "61.5", "38.5", "12"}}, 20, 2),
            "a x, b y\n"
            "  hit %    61.5\n"
            "  miss %   38.5\n"
            "  evicted  12\n");
}

TEST(TextTable, AListCutsNoFigure) {
  const std::vector<std::vector<std::string>> rows = {{"cache", "rest/compute", "hit %", "evictions"},
                                                      {"lru", "296 µs/117 µs", "61.5", "12"}};
  EXPECT_EQ(text_table(rows, 29),
            "lru\n"
            "  rest/compute  296 µs/117 µs\n"
            "  hit %         61.5\n"
            "  evictions     12\n");
  EXPECT_EQ(text_table(rows, 28),
            "lru\n"
            "  rest/compute\n"
            "    296 µs/117 µs\n"
            "  hit %         61.5\n"
            "  evictions     12\n");
}

TEST(TextTable, AListLeavesOutWhatARowDoesNotHave) {
  EXPECT_EQ(text_table({{"cache", "capacity", "hit %"}, {"lru", "", "61.5"}}, 18),
            "lru\n"
            "  hit %     61.5\n");
}

TEST(MainColumns, AreLeftOutInTheirOrderUntilTheTableFits) {
  const std::vector<std::vector<std::string>> rows = {{"cache", "hit %", "miss %", "evicted"},
                                                      {"lru", "61.5", "38.5", "12"}};
  const std::vector<std::size_t> dispensable = {3, 1};
  const auto shown = [&](std::size_t columns) {
    const MainColumns main = main_columns(rows, columns, dispensable);
    return std::pair(text_table(main.rows, columns), main.left_out);
  };
  using Headings = std::vector<std::string>;
  EXPECT_EQ(shown(26).first, text_table(rows, 26));
  EXPECT_EQ(shown(26).second, Headings());
  EXPECT_EQ(shown(25).first, "cache  hit %  miss %\nlru     61.5    38.5\n");
  EXPECT_EQ(shown(25).second, Headings{"evicted"});
  EXPECT_EQ(shown(17).first, "cache  miss %\nlru      38.5\n");
  EXPECT_EQ(shown(17).second, (Headings{"hit %", "evicted"}));
  EXPECT_EQ(shown(11).first, text_table(rows, 11)) << "a list has all of them";
  EXPECT_EQ(shown(11).second, Headings());
}

}  // namespace
}  // namespace sluice
