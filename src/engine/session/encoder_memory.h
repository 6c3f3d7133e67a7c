// What a sequence of an encoder-decoder keeps of its input: the residual stream of every token, the keys and
// values that each decoder layer makes of the encoder's output, and those of the encoder's running layer.
#pragma once

#include <cstddef>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "device/memory.h"
#include "engine/session/kv_rows.h"
#include "model/config.h"

namespace sluice::engine {

// Owns one block of memory, charged to `kv`. Its rows lie by position: an input has one length from the
// start, and is not shared, so that it needs no blocks of positions. Thread-compatible.
class EncoderMemory {
 public:
  // `positions`: most tokens of the input. 0 bytes for a model without an encoder.
  static Bytes bytes(const model::ModelConfig& config, DType dtype, std::size_t positions);
  // In the host's memory, or in a device's, which must outlive it.
  EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions,
                device::Accountant& accountant);
  EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions, device::Memory& memory);

  std::size_t positions() const { return positions_; }
  kernels::Floats hidden(std::size_t position) const;
  // The rows of the encoder's layers, which share one place: each layer is done before the next begins.
  KvRows self();
  // The rows of a decoder layer, counted from 0.
  KvRows cross(std::size_t decoder_layer);

 private:
  EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions,
                device::HostBuffer buffer, device::Block block);

  const AttentionDims dims_;
  const DType dtype_;
  const std::size_t positions_, hidden_, decoder_layers_;
  const Bytes layer_bytes_;
  device::HostBuffer buffer_;  // one of …
  device::Block block_;        // … these
  device::Address begin_;
};

}  // namespace sluice::engine
