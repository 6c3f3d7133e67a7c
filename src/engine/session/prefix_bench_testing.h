// For tests of the prefix cache: a cache of its own pool, and rows that say which tokens they belong to.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "device/space.h"
#include "engine/session/known_texts_testing.h"
#include "engine/session/prefix_cache.h"
#include "kernels/context.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine::testing {

inline model::ModelConfig tiny_config(model::AttentionKind kind) {
  model::ModelConfig config;
  config.layers = 2;
  config.attention.kind = kind;
  config.attention.heads = 2;
  config.attention.kv_heads = 1;
  config.attention.head_dim = 5;
  config.attention.nope_dim = 6;
  config.attention.value_dim = 6;
  config.attention.kv_lora_rank = 7;
  config.attention.rope_dim = config.attention.rope.dims = 2;
  return config;
}

// A pool with a cache, and sequences whose rows are a hash of the tokens up to theirs.
class PrefixBench {
 public:
  struct Live {
    int id = 0;
    std::unique_ptr<Sequence> sequence;
    Text text;  // its first length() tokens are computed
    bool shares = true;
  };

  PrefixBench(model::AttentionKind kind, DType dtype, std::size_t rows, std::size_t positions)
      : config_(tiny_config(kind)),
        dims_(config_.attention),
        dtype_(dtype),
        pool_(config_, dtype, rows, accountant_),
        cache_(config_, pool_, ops_, positions, [this] {
          return std::make_unique<Sequence>(ids_++, config_, pool_,
                                            EncoderMemory(config_, dtype_, 0, accountant_),
                                            [this](const Sequence& one) { cache_.ended(one); });
        }) {}
  ~PrefixBench() { live.clear(); }

  PrefixCache& cache() { return cache_; }
  KvPool& pool() { return pool_; }

  void compute(Live& one, std::size_t tokens) {
    for (std::size_t t = 0; t < tokens; ++t) {
      each_row(one, one.sequence->length(), [&](const kernels::CacheRow& row, std::size_t elements, float x) {
        kernels::store_cache(std::vector<float>(elements, x).data(), row);
      });
      one.sequence->advance(1);
    }
  }

  void check_rows(Live& one) {
    for (std::size_t p = 0; p < one.sequence->length(); ++p)
      each_row(one, p, [&](const kernels::CacheRow& row, std::size_t elements, float x) {
        std::vector<std::byte> expected(elements * dtype_bytes(dtype_));
        std::vector<float> scales(row.heads * kernels::cache_groups(row.columns));
        kernels::store_cache(std::vector<float>(elements, x).data(),
                             {expected.data(), dtype_, row.heads, row.columns, scales.data(), 1});
        ASSERT_EQ(std::memcmp(row.data, expected.data(), expected.size()), 0)
            << "sequence " << one.id << ", position " << p;
        if (dtype_ == DType::kI8) {
          ASSERT_EQ(row.scales[0], scales[0]);
        }
      });
  }

  std::list<Live> live;

 private:
  template <class Work>
  void each_row(Live& one, std::size_t position, const Work& work) {
    const std::uint64_t hash = xxh3(std::as_bytes(std::span(one.text).first(position + 1)));
    for (std::size_t layer = 0; layer < config_.layers; ++layer) {
      const auto visit = [&](const kernels::CacheRows& rows, std::size_t elements, float x) {
        auto* const data = const_cast<std::byte*>(device::host_space().pointer(rows.data));
        work(rows.row(data, kernels::host_floats({rows.scales}), rows.row_of(position)), elements, x);
      };
      const auto x = static_cast<float>((hash >> (8 * layer)) % 251 + 1);
      visit(one.sequence->keys(layer), dims_.key_row, x);
      if (dims_.value_row != 0) visit(one.sequence->values(layer), dims_.value_row, x + 300);
    }
  }

  const model::ModelConfig config_;
  const AttentionDims dims_;
  const DType dtype_;
  device::Accountant accountant_{kGiB};
  const kernels::Context context_{};
  kernels::HostOps ops_{context_};
  KvPool pool_;
  experts::SequenceId ids_ = 0;
  PrefixCache cache_;
};

}  // namespace sluice::engine::testing
