// What a prefix cache does in cases made by hand.
#include "engine/session/prefix_cache.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "base/error.h"
#include "engine/session/known_texts_testing.h"
#include "engine/session/prefix_bench_testing.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;
using testing::PrefixBench;
using testing::Text;

// A prompt again, with a pool that has room for one sequence alone: no block is computed twice.
TEST(PrefixCache, AFullPoolGivesASequenceTheBlockItself) {
  for (const std::size_t rows : {std::size_t{96}, std::size_t{75}}) {
    PrefixBench bench(model::AttentionKind::kGqa, DType::kBF16, rows, rows);
    Text text;
    for (std::size_t i = 0; i < rows; ++i) text.push_back(static_cast<tokenizer::TokenId>(i));
    for (const std::size_t agreeing : {rows - 1, std::size_t{50}, std::size_t{40}, std::size_t{7}}) {
      PrefixBench::Live one{0, bench.cache().begin(text, rows), text, true};
      bench.compute(one, rows - one.sequence->length());
      bench.cache().share(*one.sequence, text);
      one.sequence.reset();
      for (std::size_t i = agreeing; i < rows; ++i) text[i] += 1000;
      PrefixBench::Live again{1, bench.cache().begin(text, rows), text, true};
      ASSERT_NE(again.sequence, nullptr);
      EXPECT_EQ(again.sequence->length(), agreeing);
      bench.check_rows(again);
      EXPECT_EQ(bench.cache().use().used, testing::blocks_for(rows));
    }
  }
}

// Two that compute the same go on with one set of full blocks.
TEST(PrefixCache, SequencesThatComputedTheSameShareTheirBlocks) {
  PrefixBench bench(model::AttentionKind::kGqa, DType::kF32, 8 * kCacheBlock, 8 * kCacheBlock);
  const Text text(70, 4);
  PrefixBench::Live first{0, bench.cache().begin(text, 96), text, true};
  PrefixBench::Live second{1, bench.cache().begin(text, 96), text, true};
  for (PrefixBench::Live* one : {&first, &second}) bench.compute(*one, 70);
  EXPECT_EQ(bench.cache().use().used, 6u);
  for (PrefixBench::Live* one : {&first, &second}) bench.cache().share(*one->sequence, text);
  EXPECT_EQ(bench.cache().use().used, 4u);  // each has its third
  first.sequence.reset();
  bench.check_rows(second);
  second.sequence.reset();
  EXPECT_EQ(bench.cache().use().used, 0u);
  EXPECT_EQ(bench.cache().use().cached, 3u);
}

TEST(PrefixCache, AnEmptySequenceTakesWhatIsOnlyCached) {
  PrefixBench bench(model::AttentionKind::kGqa, DType::kF32, 4 * kCacheBlock, 4 * kCacheBlock);
  const Text text(100, 4);
  PrefixBench::Live one{0, bench.cache().begin(text, 100), text, true};
  bench.compute(one, 100);
  bench.cache().share(*one.sequence, text);
  EXPECT_THROW(bench.cache().begin_empty(1), Error);
  one.sequence.reset();
  EXPECT_EQ(bench.cache().find(text), 99u);
  const auto empty = bench.cache().begin_empty(2 * kCacheBlock);
  EXPECT_EQ(empty->length(), 0u);
  EXPECT_EQ(bench.cache().find(text), 64u);
  EXPECT_THROW(bench.cache().begin_empty(3 * kCacheBlock), Error);
  EXPECT_EQ(bench.cache().find(text), 64u);
}

TEST(PrefixCacheDeath, WhatOthersReadIsNotCutOff) {
  PrefixBench bench(model::AttentionKind::kGqa, DType::kF32, 4 * kCacheBlock, 4 * kCacheBlock);
  const Text text(50, 4);
  PrefixBench::Live one{0, bench.cache().begin(text, 60), text, true};
  bench.compute(one, 50);
  one.sequence->cut(45);
  bench.compute(one, 5);
  bench.cache().share(*one.sequence, text);
  one.sequence->cut(50);
  EXPECT_DEATH(one.sequence->cut(49), "others read");
  EXPECT_DEATH(one.sequence->clear(), "others read");
}

}  // namespace
}  // namespace sluice::engine
