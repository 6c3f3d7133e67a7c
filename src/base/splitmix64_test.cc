#include "base/splitmix64.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// The first numbers of the published program (Vigna, splitmix64.c) for the seed 1234567.
TEST(SplitMix64, GivesThePublishedNumbers) {
  SplitMix64 random(1234567);
  for (const std::uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                       4593380528125082431u, 16408922859458223821u})
    EXPECT_EQ(random.next(), expected);
}

}  // namespace
}  // namespace sluice
