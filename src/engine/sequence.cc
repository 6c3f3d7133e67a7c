#include "engine/sequence.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

std::size_t row_elements(const AttentionDims& dims) { return dims.key_row + dims.value_row; }

}  // namespace

std::size_t kv_elements_per_token(const model::ModelConfig& config) {
  return (config.layers - config.encoder_layers) * row_elements(AttentionDims(config.attention));
}

Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions,
               std::size_t encoder_positions) {
  if (!config.has_encoder()) encoder_positions = 0;
  const Bytes decoder = Bytes{kv_elements_per_token(config)} * positions * dtype_bytes(dtype);
  const Bytes cross = Bytes{kv_elements_per_token(config)} * encoder_positions * dtype_bytes(dtype);
  const Bytes layer =
      Bytes{row_elements(AttentionDims(config.attention))} * encoder_positions * dtype_bytes(dtype);
  const Bytes hidden = Bytes{config.hidden} * encoder_positions * sizeof(float);
  return round_up(decoder + cross + layer + hidden, kBlockBytes);
}

// In the buffer: the encoder's hidden states, then the decoder layers, then what they make of the encoder's
// output, then the one encoder layer.
Sequence::Sequence(const model::ModelConfig& config, DType dtype, std::size_t positions,
                   device::Accountant& accountant, std::size_t encoder_positions)
    : dims_(config.attention),
      dtype_(dtype),
      positions_(positions),
      encoder_positions_(config.has_encoder() ? encoder_positions : 0),
      encoder_layers_(config.encoder_layers),
      decoder_layers_(config.layers - config.encoder_layers),
      hidden_(config.hidden),
      buffer_(accountant, device::Account::kKv, kv_bytes(config, dtype, positions, encoder_positions_)) {}

float* Sequence::encoder_hidden(std::size_t position) {
  SLUICE_CHECK(position < encoder_positions_);
  return reinterpret_cast<float*>(buffer_.data()) + position * hidden_;
}

Bytes Sequence::layer_bytes(std::size_t positions) const {
  return Bytes{row_elements(dims_)} * positions * dtype_bytes(dtype_);
}

Sequence::Rows Sequence::self_rows(std::size_t layer) const {
  const Bytes hidden = Bytes{encoder_positions_} * hidden_ * sizeof(float);
  if (layer >= encoder_layers_)
    return {hidden + (layer - encoder_layers_) * layer_bytes(positions_), positions_};
  return {hidden + decoder_layers_ * (layer_bytes(positions_) + layer_bytes(encoder_positions_)),
          encoder_positions_};
}

Sequence::Rows Sequence::cross_rows(std::size_t layer) const {
  SLUICE_CHECK(layer >= encoder_layers_ && encoder_positions_ != 0);
  const Bytes hidden = Bytes{encoder_positions_} * hidden_ * sizeof(float);
  return {hidden + decoder_layers_ * layer_bytes(positions_) +
              (layer - encoder_layers_) * layer_bytes(encoder_positions_),
          encoder_positions_};
}

kernels::CacheView Sequence::keys_of(const Rows& rows) const {
  return {buffer_.data() + key_place(rows, 0), dtype_, dims_.key_row, dims_.key_dim};
}

kernels::CacheView Sequence::values_of(const Rows& rows) const {
  if (dims_.value_row == 0) return keys_of(rows);
  return {buffer_.data() + value_place(rows, 0), dtype_, dims_.value_row, dims_.cache_value_dim};
}

Bytes Sequence::key_place(const Rows& rows, std::size_t position) const {
  return rows.begin + position * dims_.key_row * dtype_bytes(dtype_);
}

Bytes Sequence::value_place(const Rows& rows, std::size_t position) const {
  return rows.begin + (dims_.key_row * rows.positions + position * dims_.value_row) * dtype_bytes(dtype_);
}

kernels::CacheView Sequence::keys(std::size_t layer) const { return keys_of(self_rows(layer)); }

kernels::CacheView Sequence::values(std::size_t layer) const { return values_of(self_rows(layer)); }

std::byte* Sequence::key_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + key_place(self_rows(layer), position);
}

std::byte* Sequence::value_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + value_place(self_rows(layer), position);
}

kernels::CacheView Sequence::cross_keys(std::size_t layer) const { return keys_of(cross_rows(layer)); }

kernels::CacheView Sequence::cross_values(std::size_t layer) const { return values_of(cross_rows(layer)); }

std::byte* Sequence::cross_key_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + key_place(cross_rows(layer), position);
}

std::byte* Sequence::cross_value_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + value_place(cross_rows(layer), position);
}

}  // namespace sluice::engine
