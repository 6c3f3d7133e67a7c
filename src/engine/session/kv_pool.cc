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
      rows_(rows),
      layer_bytes_(KvRows::bytes(dims_, dtype, rows)),
      buffer_(std::move(buffer)),
      block_(std::move(block)),
      begin_(block_ ? block_.address() : device::host_space().address(buffer_.data())),
      free_(blocks_of(rows)) {
  std::iota(free_.begin(), free_.end(), 0u);
}

KvPool::KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows,
               device::Accountant& accountant)
    : KvPool(config, dtype, rows,
             device::HostBuffer(accountant, device::Account::kKv, bytes(config, dtype, rows)), {}) {}

KvPool::KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Memory& memory)
    : KvPool(config, dtype, rows, {}, memory.allocate(device::Account::kKv, bytes(config, dtype, rows))) {}

std::vector<std::uint32_t> KvPool::take(std::size_t positions) {
  const std::size_t count = blocks_of(positions);
  const auto end = free_.begin() + static_cast<std::ptrdiff_t>(std::min(count, free_.size()));
  // The pool's last block may be too short.
  const bool fits = count <= free_.size() &&
                    (count == 0 || free_[count - 1] * kCacheBlock + (positions - 1) % kCacheBlock < rows_);
  if (!fits)
    throw Error(ErrorKind::kBudget, "the key/value cache has no room for another sequence")
        .expected(fmt::format("room for {} positions", positions))
        .found(fmt::format("{} of {} blocks of {} positions are free", free_.size(), blocks_of(rows_),
                           kCacheBlock));
  const std::vector<std::uint32_t> taken(free_.begin(), end);
  free_.erase(free_.begin(), end);
  return taken;
}

void KvPool::give_back(std::span<const std::uint32_t> blocks) {
  const auto middle = static_cast<std::ptrdiff_t>(free_.size());
  free_.insert(free_.end(), blocks.begin(), blocks.end());
  std::ranges::inplace_merge(free_, free_.begin() + middle);
  SLUICE_CHECK(std::ranges::adjacent_find(free_) == free_.end(), "a block is given back twice");
}

KvRows KvPool::layer(std::size_t layer) { return {begin_ + layer * layer_bytes_, dims_, dtype_, rows_}; }

}  // namespace sluice::engine
