#include "engine/session/kv_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "device/space.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;

std::size_t blocks_of(std::size_t positions) { return (positions + kCacheBlock - 1) / kCacheBlock; }

}  // namespace

std::size_t kv_elements_per_token(const model::ModelConfig& config) {
  const AttentionDims dims(config.attention);
  return config.decoder_layers() * (dims.key_row + dims.value_row);
}

Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype) {
  return config.decoder_layers() * KvRows::bytes(AttentionDims(config.attention), dtype, 1);
}

std::size_t KvPool::rows_for(std::size_t sequences, std::size_t positions) {
  return sequences == 0 ? 0 : (sequences - 1) * blocks_of(positions) * kCacheBlock + positions;
}

Bytes KvPool::bytes(const model::ModelConfig& config, DType dtype, std::size_t rows) {
  return round_up(kv_bytes_per_token(config, dtype) * rows, kBlockBytes);
}

KvPool::KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::HostBuffer buffer,
               device::Block block)
    : dims_(config.attention),
      dtype_(dtype),
      layers_(config.decoder_layers()),
      rows_(rows),
      layer_bytes_(KvRows::bytes(dims_, dtype, rows)),
      buffer_(std::move(buffer)),
      block_(std::move(block)),
      begin_(block_ ? block_.address() : device::host_space().address(buffer_.data())),
      free_(blocks_of(rows)),
      holders_(free_.size()) {
  std::iota(free_.begin(), free_.end(), 0u);
}

KvPool::KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows,
               device::Accountant& accountant)
    : KvPool(config, dtype, rows,
             device::HostBuffer(accountant, device::Account::kKv, bytes(config, dtype, rows)), {}) {}

KvPool::KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Memory& memory)
    : KvPool(config, dtype, rows, {}, memory.allocate(device::Account::kKv, bytes(config, dtype, rows))) {}

std::size_t KvPool::rows_of(BlockId block) const {
  return std::min(kCacheBlock, rows_ - block * kCacheBlock);
}

bool KvPool::has(std::size_t positions) const {
  const std::size_t count = blocks_of(positions);
  return count <= free_.size() && (count == 0 || (positions - 1) % kCacheBlock < rows_of(free_[count - 1]));
}

std::vector<KvPool::BlockId> KvPool::take(std::size_t positions) {
  if (!has(positions))
    throw Error(ErrorKind::kBudget, "the key/value cache has no room for another sequence")
        .expected(fmt::format("room for {} positions", positions))
        .found(fmt::format("{} of {} blocks of {} positions are free", free_.size(), blocks(), kCacheBlock));
  const auto end = free_.begin() + static_cast<std::ptrdiff_t>(blocks_of(positions));
  const std::vector<BlockId> taken(free_.begin(), end);
  free_.erase(free_.begin(), end);
  for (const BlockId block : taken) holders_[block] = 1;
  return taken;
}

void KvPool::hold(std::span<const BlockId> blocks) {
  for (const BlockId block : blocks) {
    SLUICE_CHECK(holders_[block] != 0, "a free block is held");
    ++holders_[block];
  }
}

void KvPool::give_back(std::span<const BlockId> blocks) {
  const auto middle = static_cast<std::ptrdiff_t>(free_.size());
  for (const BlockId block : blocks) {
    SLUICE_CHECK(holders_[block] != 0, "a block is given back twice");
    if (--holders_[block] == 0) free_.push_back(block);
  }
  std::sort(free_.begin() + middle, free_.end());
  std::ranges::inplace_merge(free_, free_.begin() + middle);
}

void KvPool::copy_rows(BlockId from, std::size_t rows, BlockId to, kernels::Ops& ops) {
  SLUICE_CHECK(from != to && rows <= std::min(rows_of(from), rows_of(to)));
  const auto copy = [&](const kernels::CacheRows& in) {
    ops.run(kernels::op::CopyCacheRows{
        .in = in, .from = from * kCacheBlock, .rows = rows, .to = to * kCacheBlock});
  };
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    copy(this->layer(layer).keys());
    if (dims_.value_row != 0) copy(this->layer(layer).values());
  }
  ops.settle();
}

KvRows KvPool::layer(std::size_t layer) { return {begin_ + layer * layer_bytes_, dims_, dtype_, rows_}; }

}  // namespace sluice::engine
