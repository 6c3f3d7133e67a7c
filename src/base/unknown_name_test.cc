#include "base/unknown_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

const std::vector<std::string> kNames = {"none", "lru", "lfu", "zipmoe"};

TEST(Nearest, IsTheNameWithTheFewestSlips) {
  EXPECT_EQ(nearest("lur", kNames), "lru");
  EXPECT_EQ(nearest("lr", kNames), "lru");
  EXPECT_EQ(nearest("zipmo", kNames), "zipmoe");
  EXPECT_EQ(nearest("nnoe", kNames), "none");
  EXPECT_EQ(nearest("zip", kNames), "");
  EXPECT_EQ(nearest("frobnicate", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kNames), "");
}

TEST(UnknownName, SaysWhatIsTakenAndWhatWasMeant) {
  EXPECT_STREQ(unknown_name("--x", "lur", kNames).what(),
               "--x: unknown name; expected none, lru, lfu or zipmoe, found \"lur\"; did you mean lru?");
  EXPECT_STREQ(unknown_name("--x", "y", {"on", "off"}, "unknown word", "leave --x out").what(),
               "--x: unknown word; expected on or off, found \"y\"; leave --x out");
  EXPECT_STREQ(unknown_name("--x", "q", {"a", "b", "c", "d", "eeee"}).what(),
               "--x: unknown name; expected one of a, b, c, d, eeee, found \"q\"; give one of these");
  EXPECT_EQ(unknown_name("--x", "far away", kNames).fix_text(), "give one of these");
}

}  // namespace
}  // namespace sluice
