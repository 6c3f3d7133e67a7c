#include "engine/session/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// (begin, length) of each part, whose tokens count up from `begin`.
std::vector<std::pair<std::size_t, std::size_t>> parts_of(std::size_t tokens, std::size_t chunk,
                                                          std::size_t stop, std::size_t* done) {
  std::vector<tokenizer::TokenId> ids(tokens);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  *done = each_chunk(ids, chunk, [&](std::size_t begin, std::span<const tokenizer::TokenId> part) {
    if (begin >= stop) return false;
    parts.emplace_back(begin, part.size());
    for (std::size_t i = 0; i < part.size(); ++i)
      EXPECT_EQ(part[i], static_cast<tokenizer::TokenId>(begin + i));
    return true;
  });
  return parts;
}

TEST(Chunks, CoverTheInputInOrder) {
  std::size_t done = 1;
  EXPECT_TRUE(parts_of(0, 4, 99, &done).empty());
  EXPECT_EQ(done, 0u);
  EXPECT_THAT(parts_of(3, 4, 99, &done), ElementsAre(Pair(0, 3)));
  EXPECT_EQ(done, 3u);
  EXPECT_THAT(parts_of(8, 4, 99, &done), ElementsAre(Pair(0, 4), Pair(4, 4)));
  EXPECT_THAT(parts_of(9, 4, 99, &done), ElementsAre(Pair(0, 4), Pair(4, 4), Pair(8, 1)));
  EXPECT_EQ(done, 9u);
}

TEST(Chunks, EndInFrontOfTheOneThatIsRefused) {
  std::size_t done = 1;
  EXPECT_THAT(parts_of(9, 4, 4, &done), ElementsAre(Pair(0, 4)));
  EXPECT_EQ(done, 4u);
  EXPECT_TRUE(parts_of(9, 4, 0, &done).empty());
  EXPECT_EQ(done, 0u);
}

}  // namespace
}  // namespace sluice::engine
