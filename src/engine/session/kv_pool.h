// The keys and values of all sequences of an engine, in blocks of positions that sequences take when they
// begin and give back when they end. Several holders may share a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "device/memory.h"
#include "engine/session/kv_rows.h"
#include "kernels/ops/ops.h"
#include "model/config.h"

namespace sluice::engine {

// Elements that one token adds over all decoder layers, and their bytes (BF16, F32 or I8).
std::size_t kv_elements_per_token(const model::ModelConfig& config);
Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype);

// One block of memory, charged to `kv`, that exists from the start: for each decoder layer rows for all
// positions of the pool. A block is kernels::kCacheBlock consecutive rows of every layer; the last block of a
// pool may be shorter. A block that is taken has one holder, and may get more: it is free again when all have
// given it back. Thread-compatible.
class KvPool {
 public:
  using BlockId = std::uint32_t;

  // Rows of a pool for this many sequences of this many positions each.
  static std::size_t rows_for(std::size_t sequences, std::size_t positions);
  static Bytes bytes(const model::ModelConfig& config, DType dtype, std::size_t rows);

  // In the host's memory, or in a device's, which must outlive it.
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Accountant& accountant);
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Memory& memory);

  std::size_t rows() const { return rows_; }
  std::size_t blocks() const { return holders_.size(); }
  std::size_t free_blocks() const { return free_.size(); }
  std::size_t rows_of(BlockId block) const;  // kernels::kCacheBlock, or fewer of the last one
  // Takes blocks for this many positions, in ascending order, the lowest free ones: consecutive blocks are
  // read as one stretch. Error(kBudget) and nothing taken if too few are free.
  std::vector<BlockId> take(std::size_t positions);
  bool has(std::size_t positions) const;  // whether take() takes them
  // Taken blocks get one more holder each.
  void hold(std::span<const BlockId> blocks);
  std::size_t holders(BlockId block) const { return holders_[block]; }  // 0: it is free
  // Each loses one holder.
  void give_back(std::span<const BlockId> blocks);
  // The first rows of a block, in all layers, become those of another; over when the call returns. Throws
  // what `ops`, the unit that the pool is of, does. Error(kIo).
  void copy_rows(BlockId from, std::size_t rows, BlockId to, kernels::Ops& ops);

  // `layer` counts the decoder's layers.
  KvRows layer(std::size_t layer);

 private:
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::HostBuffer buffer,
         device::Block block);

  const AttentionDims dims_;
  const DType dtype_;
  const std::size_t layers_, rows_;
  const Bytes layer_bytes_;
  device::HostBuffer buffer_;  // one of …
  device::Block block_;        // … these
  device::Address begin_;
  std::vector<BlockId> free_;           // ascending
  std::vector<std::uint32_t> holders_;  // by block
};

}  // namespace sluice::engine
