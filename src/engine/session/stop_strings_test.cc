#include "engine/session/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::engine {
namespace {

TEST(StopStringsTest, TextBeforeTheFirstStopStringIsGivenOutWhole) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.append("one E"), "one ");
  EXPECT_EQ(stops.append("N two EN"), "EN two ");
  EXPECT_FALSE(stops.found());
  EXPECT_EQ(stops.append("D three"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.append("more"), "");
}

TEST(StopStringsTest, WhatIsHeldBackComesAtTheEnd) {
  StopStrings stops({"stop"});
  EXPECT_EQ(stops.append("sto"), "");
  EXPECT_EQ(stops.finish(), "sto");
}

TEST(StopStringsTest, TheEarliestStringWinsWhateverItsPlaceInTheList) {
  StopStrings stops({"bb", "a"});
  EXPECT_EQ(stops.append("xxabb"), "xx");
}

TEST(StopStringsTest, AnyCuttingOfTheTextGivesTheSame) {
  const unsigned seed = 20240607;
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += static_cast<char>('a' + random() % 3);
    const std::vector<std::string> list = {"abc", "cab", "aaaa"};
    std::size_t first = std::string::npos;
    for (const std::string& stop : list) first = std::min(first, text.find(stop));
    StopStrings stops(list);
    std::string out;
    for (std::size_t at = 0; at < text.size() && !stops.found();) {
      const std::size_t count = 1 + random() % 5;
      out += stops.append(text.substr(at, count));
      at += count;
    }
    if (!stops.found()) out += stops.finish();
    EXPECT_EQ(out, text.substr(0, first)) << "seed " << seed << " text " << text;
  }
}

}  // namespace
}  // namespace sluice::engine
