// The keys and values of all sequences of an engine, in blocks of positions that sequences take when they
// begin and give back when they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "device/memory.h"
#include "engine/session/kv_rows.h"
#include "model/config.h"

namespace sluice::engine {

// Elements that one token adds over all decoder layers, and their bytes (BF16, F32 or I8).
std::size_t kv_elements_per_token(const model::ModelConfig& config);
Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype);

// One block of memory, charged to `kv`, that exists from the start: for each decoder layer rows for all
// positions of the pool. A block is kernels::kCacheBlock consecutive rows of every layer; the last block of a
// pool may be shorter. Thread-compatible.
class KvPool {
 public:
  // Rows of a pool for so many sequences of so many positions each.
  static std::size_t rows_for(std::size_t sequences, std::size_t positions);
  static Bytes bytes(const model::ModelConfig& config, DType dtype, std::size_t rows);

  // In the host's memory, or in a device's, which must outlive it.
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Accountant& accountant);
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::Memory& memory);

  std::size_t free_blocks() const { return free_.size(); }
  // Takes blocks for so many positions, in ascending order, the lowest free ones: consecutive blocks are read
  // as one stretch. Error(kBudget) and nothing taken if too few are free.
  std::vector<std::uint32_t> take(std::size_t positions);
  void give_back(std::span<const std::uint32_t> blocks);

  // `layer` counts the decoder's layers.
  KvRows layer(std::size_t layer);

 private:
  KvPool(const model::ModelConfig& config, DType dtype, std::size_t rows, device::HostBuffer buffer,
         device::Block block);

  const AttentionDims dims_;
  const DType dtype_;
  const std::size_t rows_;
  const Bytes layer_bytes_;
  device::HostBuffer buffer_;  // one of …
  device::Block block_;        // … these
  device::Address begin_;
  std::vector<std::uint32_t> free_;  // ascending
};

}  // namespace sluice::engine
