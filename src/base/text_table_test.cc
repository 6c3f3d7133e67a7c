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

}  // namespace
}  // namespace sluice
