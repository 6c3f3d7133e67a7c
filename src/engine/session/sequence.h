// One sequence: the key/value cache of its positions so far and, behind an encoder, the data that the decoder
// attends to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/dtype.h"
#include "device/host_buffer.h"
#include "engine/session/attention_dims.h"
#include "engine/session/request_statistics.h"
#include "experts/core/sequence_span.h"
#include "kernels/attention/attention.h"

namespace sluice::engine {

// Elements that one token adds over all layers, and their bytes (BF16, F32 or I8).
std::size_t kv_elements_per_token(const model::ModelConfig& config);
Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype);
// `encoder_positions`: most tokens of the encoder's input. Besides the keys and values of the decoder's
// layers, these add the input's keys and values for each such layer, its hidden states in fp32, and its keys
// and values of one encoder layer.
Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions,
               std::size_t encoder_positions = 0);

// Owns its cache, charged to `kv`. Thread-compatible.
class Sequence {
 public:
  // `ended` is called with the id when the sequence ends.
  Sequence(experts::SequenceId id, const model::ModelConfig& config, DType dtype, std::size_t positions,
           device::Accountant& accountant, std::size_t encoder_positions = 0,
           std::function<void(experts::SequenceId)> ended = {});
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  experts::SequenceId id() const { return id_; }  // also after clear() and cut(): one for the object's life
  std::size_t length() const { return length_; }  // tokens whose keys and values are stored
  std::size_t positions() const { return positions_; }  // most tokens
  void advance(std::size_t tokens) { length_ += tokens; }
  void clear() { cut(0); }
  void cut(std::size_t tokens);  // keeps the first `tokens`

  // The encoder's input: its number of tokens (0: not yet encoded), and the residual stream of each token.
  std::size_t encoder_length() const { return encoder_length_; }
  std::size_t encoder_positions() const { return encoder_positions_; }
  void set_encoder_length(std::size_t tokens) { encoder_length_ = tokens; }
  float* encoder_hidden(std::size_t position);

  // A sequence is in one pass at a time; its length changes only when the pass ends, and clear() and cut() are
  // not allowed while it is in one.
  void join_pass();
  void leave_pass() { in_pass_ = false; }
  // What the request has cost; clear() does not change it.
  RequestStatistics& statistics() { return statistics_; }
  const RequestStatistics& statistics() const { return statistics_; }

  // Rows of one layer, by position. For MLA the value view is the first part of the key rows. All encoder
  // layers share one place: each layer is done before the next begins.
  kernels::CacheView keys(std::size_t layer) const;
  kernels::CacheView values(std::size_t layer) const;
  // Where to write the row of a position.
  kernels::CacheRow key_row(std::size_t layer, std::size_t position);
  kernels::CacheRow value_row(std::size_t layer, std::size_t position);
  // Keys and values that a decoder layer makes from the encoder's output.
  kernels::CacheView cross_keys(std::size_t layer) const;
  kernels::CacheView cross_values(std::size_t layer) const;
  kernels::CacheRow cross_key_row(std::size_t layer, std::size_t position);
  kernels::CacheRow cross_value_row(std::size_t layer, std::size_t position);

 private:
  // Keys or values of one layer: first the scales, if the layer has any, by group and position; then the
  // rows.
  struct Rows {
    Bytes begin = 0;
    std::size_t positions = 0;
    std::size_t heads = 0, columns = 0;
  };
  Rows keys_at(Bytes begin, std::size_t positions) const;
  Rows values_at(Bytes begin, std::size_t positions) const;  // behind the keys that begin there
  Bytes layer_bytes(std::size_t positions) const;
  // Where a layer's keys begin, and its number of positions.
  std::pair<Bytes, std::size_t> self(std::size_t layer) const;
  std::pair<Bytes, std::size_t> cross(std::size_t layer) const;
  kernels::CacheView view(const Rows& rows) const;
  kernels::CacheRow row(const Rows& rows, std::size_t position);

  experts::SequenceId id_;
  bool in_pass_ = false;
  RequestStatistics statistics_;
  std::function<void(experts::SequenceId)> ended_;
  AttentionDims dims_;
  DType dtype_;
  std::size_t positions_, length_ = 0, encoder_positions_, encoder_length_ = 0;
  std::size_t encoder_layers_, decoder_layers_, hidden_;
  device::HostBuffer buffer_;
};

}  // namespace sluice::engine
