#include "base/append_format.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(AppendFormat, AddsToWhatIsThere) {
  std::string text = "layer";
  append_format(text, " {}/{:02x}={}", 3, 10, std::string("full"));
  append_format(text, ";");
  EXPECT_EQ(text, "layer 3/0a=full;");
}

// Steps write their decisions into strings that keep their memory.
TEST(AppendFormat, AllocatesNothingWhereTheTextFits) {
  std::string text;
  text.reserve(2000);
  const char* const memory = text.data();
  append_format(text, "{}{}", std::string(900, 'a'), std::string(900, 'b'));
  EXPECT_EQ(text, std::string(900, 'a') + std::string(900, 'b'));
  EXPECT_EQ(text.data(), memory);
}

}  // namespace
}  // namespace sluice
