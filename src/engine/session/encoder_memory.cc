#include "engine/session/encoder_memory.h"

#include <utility>

#include "base/error.h"
#include "device/space.h"

namespace sluice::engine {
// Order in the buffer: hidden states, the decoder layers' keys and values, those of the encoder's layer.
Bytes EncoderMemory::bytes(const model::ModelConfig& config, DType dtype, std::size_t positions) {
  if (!config.has_encoder()) return 0;
  const Bytes layer = KvRows::bytes(AttentionDims(config.attention), dtype, positions);
  return round_up(Bytes{config.hidden} * positions * sizeof(float) + (config.decoder_layers() + 1) * layer,
                  kBlockBytes);
}

EncoderMemory::EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions,
                             device::HostBuffer buffer, device::Block block)
    : dims_(config.attention),
      dtype_(dtype),
      positions_(config.has_encoder() ? positions : 0),
      hidden_(config.hidden),
      decoder_layers_(config.decoder_layers()),
      layer_bytes_(KvRows::bytes(dims_, dtype, positions_)),
      buffer_(std::move(buffer)),
      block_(std::move(block)),
      begin_(block_ ? block_.address() : device::host_space().address(buffer_.data())) {}

EncoderMemory::EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions,
                             device::Accountant& accountant)
    : EncoderMemory(config, dtype, positions,
                    device::HostBuffer(accountant, device::Account::kKv, bytes(config, dtype, positions)),
                    {}) {}

EncoderMemory::EncoderMemory(const model::ModelConfig& config, DType dtype, std::size_t positions,
                             device::Memory& memory)
    : EncoderMemory(config, dtype, positions, {},
                    memory.allocate(device::Account::kKv, bytes(config, dtype, positions))) {}

kernels::Floats EncoderMemory::hidden(std::size_t position) const {
  SLUICE_CHECK(position < positions_);
  return kernels::Floats{begin_} + position * hidden_;
}

KvRows EncoderMemory::cross(std::size_t decoder_layer) {
  SLUICE_CHECK(positions_ != 0 && decoder_layer <= decoder_layers_);
  const device::Address rows = begin_ + positions_ * hidden_ * sizeof(float);
  return {rows + decoder_layer * layer_bytes_, dims_, dtype_, positions_};
}

KvRows EncoderMemory::self() { return cross(decoder_layers_); }

}  // namespace sluice::engine
