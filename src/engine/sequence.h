// One sequence: the key/value cache of its positions so far; behind an encoder, also what the decoder attends
// to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/dtype.h"
#include "device/host_buffer.h"
#include "engine/attention_dims.h"
#include "kernels/attention.h"

namespace sluice::engine {

// Numbers that one token adds over all layers, and the bytes that they take (BF16, F32 or I8).
std::size_t kv_elements_per_token(const model::ModelConfig& config);
Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype);
// `encoder_positions`: most tokens of the encoder's input. They add, to the keys and values of the decoder's
// layers, the input's keys and values for each of these, its hidden states in fp32, and its keys and values
// of one encoder layer.
Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions,
               std::size_t encoder_positions = 0);

// Owns its cache, charged to `kv`. Thread-compatible.
class Sequence {
 public:
  Sequence(const model::ModelConfig& config, DType dtype, std::size_t positions,
           device::Accountant& accountant, std::size_t encoder_positions = 0);

  std::size_t length() const { return length_; }        // tokens whose keys and values are stored
  std::size_t positions() const { return positions_; }  // most tokens
  void advance(std::size_t tokens) { length_ += tokens; }
  void clear() { length_ = 0; }
  void cut(std::size_t tokens) { length_ = std::min(length_, tokens); }  // keeps the first `tokens`

  // The encoder's input: how many tokens it has (0: nothing encoded yet), and the residual stream of each.
  std::size_t encoder_length() const { return encoder_length_; }
  std::size_t encoder_positions() const { return encoder_positions_; }
  void set_encoder_length(std::size_t tokens) { encoder_length_ = tokens; }
  float* encoder_hidden(std::size_t position);

  // Rows of one layer, by position. For MLA the value view is the first part of the key rows. All encoder
  // layers share one place: each is done before the next begins.
  kernels::CacheView keys(std::size_t layer) const;
  kernels::CacheView values(std::size_t layer) const;
  // Where the row of a position is written.
  kernels::CacheRow key_row(std::size_t layer, std::size_t position);
  kernels::CacheRow value_row(std::size_t layer, std::size_t position);
  // Keys and values that a decoder layer makes of the encoder's output.
  kernels::CacheView cross_keys(std::size_t layer) const;
  kernels::CacheView cross_values(std::size_t layer) const;
  kernels::CacheRow cross_key_row(std::size_t layer, std::size_t position);
  kernels::CacheRow cross_value_row(std::size_t layer, std::size_t position);

 private:
  // Keys or values of one layer: the scales, if it has any, by group and position; then the rows.
  struct Rows {
    Bytes begin = 0;
    std::size_t positions = 0;
    std::size_t heads = 0, columns = 0;
  };
  Rows keys_at(Bytes begin, std::size_t positions) const;
  Rows values_at(Bytes begin, std::size_t positions) const;  // behind the keys that begin there
  Bytes layer_bytes(std::size_t positions) const;
  // Where a layer's keys begin, and how many positions it has.
  std::pair<Bytes, std::size_t> self(std::size_t layer) const;
  std::pair<Bytes, std::size_t> cross(std::size_t layer) const;
  kernels::CacheView view(const Rows& rows) const;
  kernels::CacheRow row(const Rows& rows, std::size_t position);

  AttentionDims dims_;
  DType dtype_;
  std::size_t positions_, length_ = 0, encoder_positions_, encoder_length_ = 0;
  std::size_t encoder_layers_, decoder_layers_, hidden_;
  device::HostBuffer buffer_;
};

}  // namespace sluice::engine
