#include "engine/session/kv_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "device/space.h"
#include "engine/session/sequence.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;
using testing::ElementsAre;

model::ModelConfig config_of(model::AttentionKind kind) {
  model::ModelConfig config;
  config.layers = 3;
  config.attention.kind = kind;
  config.attention.heads = 4;
  config.attention.kv_heads = 2;
  config.attention.head_dim = 10;
  config.attention.nope_dim = 6;
  config.attention.value_dim = 6;
  config.attention.kv_lora_rank = 12;
  config.attention.rope_dim = config.attention.rope.dims = 4;
  return config;
}

TEST(KvPool, TakesTheLowestFreeBlocks) {
  device::Accountant accountant(kGiB);
  KvPool pool(config_of(model::AttentionKind::kGqa), DType::kBF16, 6 * kCacheBlock, accountant);
  const auto first = pool.take(2 * kCacheBlock), second = pool.take(1), third = pool.take(kCacheBlock + 1);
  EXPECT_THAT(first, ElementsAre(0, 1));
  EXPECT_THAT(second, ElementsAre(2));
  EXPECT_THAT(third, ElementsAre(3, 4));
  EXPECT_THAT(pool.take(0), ElementsAre());
  pool.give_back(second);
  pool.give_back(first);
  EXPECT_EQ(pool.free_blocks(), 4u);
  EXPECT_THAT(pool.take(4 * kCacheBlock), ElementsAre(0, 1, 2, 5));
}

TEST(KvPool, RefusesWhatDoesNotFitAndKeepsItsBlocks) {
  device::Accountant accountant(kGiB);
  const std::size_t rows = KvPool::rows_for(2, kCacheBlock + 5);  // the last block has five rows
  EXPECT_EQ(rows, 3 * kCacheBlock + 5);
  KvPool pool(config_of(model::AttentionKind::kGqa), DType::kF32, rows, accountant);
  EXPECT_EQ(accountant.used(device::Account::kKv),
            KvPool::bytes(config_of(model::AttentionKind::kGqa), DType::kF32, rows));
  EXPECT_THROW(pool.take(4 * kCacheBlock), Error);
  EXPECT_THROW(pool.take(3 * kCacheBlock + 6), Error);
  EXPECT_EQ(pool.free_blocks(), 4u);
  EXPECT_EQ(pool.take(kCacheBlock + 5).size(), 2u);
  EXPECT_THROW(pool.take(kCacheBlock + 6), Error);
  EXPECT_EQ(pool.take(kCacheBlock + 5).size(), 2u);
  EXPECT_THROW(pool.take(1), Error);
}

TEST(KvPoolDeath, ABlockGivenBackTwiceIsFound) {
  device::Accountant accountant(kGiB);
  KvPool pool(config_of(model::AttentionKind::kGqa), DType::kBF16, 64, accountant);
  const auto taken = pool.take(40);
  pool.give_back(taken);
  EXPECT_DEATH(pool.give_back(taken), "twice");
}

TEST(KvPool, ABlockIsFreeWhenAllItsHoldersGaveItBack) {
  device::Accountant accountant(kGiB);
  KvPool pool(config_of(model::AttentionKind::kGqa), DType::kBF16, 4 * kCacheBlock, accountant);
  const auto taken = pool.take(3 * kCacheBlock);
  pool.hold(std::vector<KvPool::BlockId>{0, 2, 2});
  EXPECT_EQ(pool.holders(2), 3u);
  pool.give_back(taken);
  EXPECT_EQ(pool.free_blocks(), 2u);
  EXPECT_THAT(pool.take(2 * kCacheBlock), ElementsAre(1, 3));
  pool.give_back(std::vector<KvPool::BlockId>{2, 0, 2});
  EXPECT_THAT(pool.take(2 * kCacheBlock), ElementsAre(0, 2));
}

// All bytes of the rows that are copied, and no others: each row of each block is filled with its number.
TEST(KvPool, CopiesTheFirstRowsOfABlockInAllLayers) {
  for (const auto kind : {model::AttentionKind::kGqa, model::AttentionKind::kMla})
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      SCOPED_TRACE(dtype_name(dtype));
      const model::ModelConfig config = config_of(kind);
      device::Accountant accountant(kGiB);
      KvPool pool(config, dtype, 3 * kCacheBlock - 7, accountant);
      const kernels::Context context{};
      kernels::HostOps ops(context);
      const auto each = [&](const auto& work) {  // byte or scale, block and row
        const auto of = [&](const kernels::CacheRows& cache) {
          auto* const data = const_cast<std::byte*>(device::host_space().pointer(cache.data));
          const Bytes row = cache.row_elements * dtype_bytes(dtype);
          for (std::size_t r = 0; r < cache.rows; ++r) {
            for (Bytes b = 0; b < row; ++b)
              work(reinterpret_cast<unsigned char&>(data[r * row + b]), r / kCacheBlock, r % kCacheBlock);
            for (std::size_t at = r; at < cache.scale_floats(); at += cache.rows)
              work(kernels::host_floats({cache.scales})[at], r / kCacheBlock, r % kCacheBlock);
          }
        };
        for (std::size_t layer = 0; layer < config.layers; ++layer) {
          of(pool.layer(layer).keys());
          if (AttentionDims(config.attention).value_row != 0) of(pool.layer(layer).values());
        }
      };
      each([](auto& value, std::size_t block, std::size_t row) {
        value = static_cast<std::remove_cvref_t<decltype(value)>>(50 * block + row);
      });
      pool.copy_rows(0, 21, 2, ops);
      std::size_t bytes = 0;
      each([&](const auto& value, std::size_t block, std::size_t row) {
        ++bytes;
        ASSERT_EQ(value, block == 2 && row < 21 ? row : 50 * block + row);
      });
      EXPECT_GT(bytes, 3 * kCacheBlock * config.layers);
    }
}

// Sequences that begin and end at random: each finds its own rows as it wrote them, and no rows are outside.
TEST(KvPool, SequencesDoNotTouchEachOther) {
  for (const auto kind : {model::AttentionKind::kGqa, model::AttentionKind::kMla})
    for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8}) {
      const std::uint64_t seed = 11;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(dtype_name(dtype)));
      std::mt19937_64 random(seed);
      const model::ModelConfig config = config_of(kind);
      const AttentionDims dims(config.attention);
      device::Accountant accountant(kGiB);
      const std::size_t positions = 75;
      KvPool pool(config, dtype, KvPool::rows_for(4, positions), accountant);
      struct Live {
        std::unique_ptr<Sequence> sequence;
        float number = 0;
      };
      std::vector<Live> live;
      std::set<experts::SequenceId> ended;
      const auto each_row = [&](Sequence& sequence, const auto& work) {
        const auto row_of = [](const kernels::CacheRows& cache, std::size_t p) {
          const auto* const data = device::host_space().pointer(cache.data);
          return cache.row(const_cast<std::byte*>(data), kernels::host_floats({cache.scales}),
                           cache.row_of(p));
        };
        for (std::size_t layer = 0; layer < config.layers; ++layer)
          for (std::size_t p = 0; p < positions; ++p) {
            work(row_of(sequence.keys(layer), p), sequence.keys(layer), p, dims.key_row);
            if (dims.value_row != 0)
              work(row_of(sequence.values(layer), p), sequence.values(layer), p, dims.value_row);
          }
      };
      for (experts::SequenceId id = 0; id < 30; ++id) {
        if (live.size() == 4) live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
        live.push_back({std::make_unique<Sequence>(id, config, pool, positions,
                                                   EncoderMemory(config, dtype, 0, accountant),
                                                   [&](const Sequence& one) { ended.insert(one.id()); }),
                        static_cast<float>(id + 1)});
        each_row(*live.back().sequence, [&](const kernels::CacheRow& row, const kernels::CacheRows&,
                                            std::size_t, std::size_t elements) {
          kernels::store_cache(std::vector<float>(elements, live.back().number).data(), row);
        });
        for (const Live& one : live)
          each_row(*one.sequence, [&](const kernels::CacheRow& row, const kernels::CacheRows& cache,
                                      std::size_t p, std::size_t elements) {
            const kernels::CacheView view = cache.view(device::host_space().pointer(cache.data), nullptr);
            const std::size_t at = view.blocks[p / kCacheBlock] * kCacheBlock + p % kCacheBlock;
            ASSERT_EQ(view.data + at * view.row_elements * dtype_bytes(dtype), row.data);
            std::vector<std::byte> expected(elements * dtype_bytes(dtype));
            std::vector<float> scales(row.heads * kernels::cache_groups(row.columns));
            kernels::store_cache(std::vector<float>(elements, one.number).data(),
                                 {expected.data(), dtype, row.heads, row.columns, scales.data(), 1});
            ASSERT_EQ(std::memcmp(row.data, expected.data(), expected.size()), 0);
            if (dtype == DType::kI8) {
              ASSERT_EQ(row.scales[0], scales[0]);
            }
          });
      }
      EXPECT_EQ(ended.size(), 26u);
      live.clear();
      EXPECT_EQ(pool.free_blocks(), 12u);
    }
}

}  // namespace
}  // namespace sluice::engine
