// One sequence: the key/value cache of its positions so far.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "device/host_buffer.h"
#include "engine/attention_dims.h"
#include "kernels/attention.h"

namespace sluice::engine {

// Numbers that one token adds over all layers.
std::size_t kv_elements_per_token(const model::ModelConfig& config);
Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions);

// Owns its cache, charged to `kv`. Thread-compatible.
class Sequence {
 public:
  Sequence(const model::ModelConfig& config, DType dtype, std::size_t positions, device::Accountant& accountant);

  std::size_t length() const { return length_; }        // tokens whose keys and values are stored
  std::size_t positions() const { return positions_; }  // most tokens
  void advance(std::size_t tokens) { length_ += tokens; }
  void clear() { length_ = 0; }

  // Rows of one layer, by position. For MLA the value view is the first part of the key rows.
  kernels::CacheView keys(std::size_t layer) const;
  kernels::CacheView values(std::size_t layer) const;
  // Where the row of a position is written.
  std::byte* key_row(std::size_t layer, std::size_t position);
  std::byte* value_row(std::size_t layer, std::size_t position);
  DType dtype() const { return dtype_; }

 private:
  AttentionDims dims_;
  DType dtype_;
  std::size_t positions_, length_ = 0;
  Bytes layer_bytes_;                                    // keys then values of one layer
  device::HostBuffer buffer_;
};

}  // namespace sluice::engine
