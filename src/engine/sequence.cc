#include "engine/sequence.h"

namespace sluice::engine {

std::size_t kv_elements_per_token(const model::ModelConfig& config) {
  const AttentionDims dims(config.attention);
  return config.layers * (dims.key_row + dims.value_row);
}

Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions) {
  return round_up(Bytes{kv_elements_per_token(config)} * positions * dtype_bytes(dtype), kBlockBytes);
}

Sequence::Sequence(const model::ModelConfig& config, DType dtype, std::size_t positions,
                   device::Accountant& accountant)
    : dims_(config.attention),
      dtype_(dtype),
      positions_(positions),
      layer_bytes_((dims_.key_row + dims_.value_row) * positions * dtype_bytes(dtype)),
      buffer_(accountant, device::Account::kKv, kv_bytes(config, dtype, positions)) {}

kernels::CacheView Sequence::keys(std::size_t layer) const {
  return {buffer_.data() + layer * layer_bytes_, dtype_, dims_.key_row, dims_.key_dim};
}

kernels::CacheView Sequence::values(std::size_t layer) const {
  if (dims_.value_row == 0) return keys(layer);
  return {buffer_.data() + layer * layer_bytes_ + dims_.key_row * positions_ * dtype_bytes(dtype_), dtype_,
          dims_.value_row, dims_.cache_value_dim};
}

std::byte* Sequence::key_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + layer * layer_bytes_ + position * dims_.key_row * dtype_bytes(dtype_);
}

std::byte* Sequence::value_row(std::size_t layer, std::size_t position) {
  return buffer_.data() + layer * layer_bytes_ + (dims_.key_row * positions_ + position * dims_.value_row) * dtype_bytes(dtype_);
}

}  // namespace sluice::engine
