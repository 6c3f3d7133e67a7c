#include "engine/session/sequence.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

std::size_t row_elements(const AttentionDims& dims) { return dims.key_row + dims.value_row; }

Bytes scale_bytes(DType dtype, std::size_t heads, std::size_t columns) {
  return dtype == DType::kI8 ? Bytes{heads} * kernels::cache_groups(columns) * sizeof(float) : 0;
}

// Rows of codes are padded so that floats may follow.
std::size_t padded(DType dtype, std::size_t elements) {
  return dtype == DType::kI8 ? round_up(elements, sizeof(float)) : elements;
}

// Bytes of the keys, or of the values, of one position and layer.
Bytes row_bytes(DType dtype, std::size_t heads, std::size_t columns) {
  return padded(dtype, heads * columns) * dtype_bytes(dtype) + scale_bytes(dtype, heads, columns);
}

// Bytes of both.
Bytes row_bytes(const AttentionDims& dims, DType dtype) {
  return row_bytes(dtype, dims.kv_heads, dims.key_dim) +
         (dims.value_row != 0 ? row_bytes(dtype, dims.kv_heads, dims.cache_value_dim) : 0);
}

}  // namespace

std::size_t kv_elements_per_token(const model::ModelConfig& config) {
  return (config.layers - config.encoder_layers) * row_elements(AttentionDims(config.attention));
}

Bytes kv_bytes_per_token(const model::ModelConfig& config, DType dtype) {
  return Bytes{config.layers - config.encoder_layers} * row_bytes(AttentionDims(config.attention), dtype);
}

Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t positions,
               std::size_t encoder_positions) {
  if (!config.has_encoder()) encoder_positions = 0;
  const Bytes decoder = kv_bytes_per_token(config, dtype) * positions;
  const Bytes cross = kv_bytes_per_token(config, dtype) * encoder_positions;
  // A row of an encoder layer is as long as a row of the decoder.
  const Bytes layer = row_bytes(AttentionDims(config.attention), dtype) * encoder_positions;
  const Bytes hidden = Bytes{config.hidden} * encoder_positions * sizeof(float);
  return round_up(decoder + cross + layer + hidden, kBlockBytes);
}

// Order in the buffer: the encoder's hidden states, the decoder layers, their keys and values of the
// encoder's output, the single encoder layer.
Sequence::Sequence(experts::SequenceId id, const model::ModelConfig& config, DType dtype,
                   std::size_t positions, device::Accountant& accountant, std::size_t encoder_positions,
                   std::function<void(experts::SequenceId)> ended)
    : id_(id),
      ended_(std::move(ended)),
      dims_(config.attention),
      dtype_(dtype),
      positions_(positions),
      encoder_positions_(config.has_encoder() ? encoder_positions : 0),
      encoder_layers_(config.encoder_layers),
      decoder_layers_(config.layers - config.encoder_layers),
      hidden_(config.hidden),
      buffer_(accountant, device::Account::kKv, kv_bytes(config, dtype, positions, encoder_positions_)) {}

Sequence::~Sequence() {
  if (ended_) ended_(id_);
}

void Sequence::cut(std::size_t tokens) {
  SLUICE_CHECK(!in_pass_, "a sequence is cut while a pass computes its tokens");
  length_ = std::min(length_, tokens);
}

void Sequence::join_pass() {
  SLUICE_CHECK(!in_pass_, "a sequence is in two passes");
  in_pass_ = true;
}

float* Sequence::encoder_hidden(std::size_t position) {
  SLUICE_CHECK(position < encoder_positions_);
  return reinterpret_cast<float*>(buffer_.data()) + position * hidden_;
}

Bytes Sequence::layer_bytes(std::size_t positions) const { return row_bytes(dims_, dtype_) * positions; }

std::pair<Bytes, std::size_t> Sequence::self(std::size_t layer) const {
  const Bytes hidden = Bytes{encoder_positions_} * hidden_ * sizeof(float);
  if (layer >= encoder_layers_)
    return {hidden + (layer - encoder_layers_) * layer_bytes(positions_), positions_};
  return {hidden + decoder_layers_ * (layer_bytes(positions_) + layer_bytes(encoder_positions_)),
          encoder_positions_};
}

std::pair<Bytes, std::size_t> Sequence::cross(std::size_t layer) const {
  SLUICE_CHECK(layer >= encoder_layers_ && encoder_positions_ != 0);
  const Bytes hidden = Bytes{encoder_positions_} * hidden_ * sizeof(float);
  return {hidden + decoder_layers_ * layer_bytes(positions_) +
              (layer - encoder_layers_) * layer_bytes(encoder_positions_),
          encoder_positions_};
}

Sequence::Rows Sequence::keys_at(Bytes begin, std::size_t positions) const {
  return {begin, positions, dims_.kv_heads, dims_.key_dim};
}

Sequence::Rows Sequence::values_at(Bytes begin, std::size_t positions) const {
  return {begin + positions * row_bytes(dtype_, dims_.kv_heads, dims_.key_dim), positions, dims_.kv_heads,
          dims_.cache_value_dim};
}

kernels::CacheView Sequence::view(const Rows& rows) const {
  const Bytes scales = scale_bytes(dtype_, rows.heads, rows.columns) * rows.positions;
  kernels::CacheView view;
  view.data = buffer_.data() + rows.begin + scales;
  view.dtype = dtype_;
  view.row_elements = padded(dtype_, rows.heads * rows.columns);
  view.head_stride = rows.columns;
  if (scales != 0) view.scales = reinterpret_cast<const float*>(buffer_.data() + rows.begin);
  view.scale_stride = rows.positions;
  return view;
}

kernels::CacheRow Sequence::row(const Rows& rows, std::size_t position) {
  const Bytes scales = scale_bytes(dtype_, rows.heads, rows.columns) * rows.positions;
  kernels::CacheRow row;
  row.data = buffer_.data() + rows.begin + scales +
             position * padded(dtype_, rows.heads * rows.columns) * dtype_bytes(dtype_);
  row.dtype = dtype_;
  row.heads = rows.heads;
  row.columns = rows.columns;
  if (scales != 0) row.scales = reinterpret_cast<float*>(buffer_.data() + rows.begin) + position;
  row.scale_stride = rows.positions;
  return row;
}

kernels::CacheView Sequence::keys(std::size_t layer) const {
  const auto [begin, positions] = self(layer);
  return view(keys_at(begin, positions));
}

kernels::CacheView Sequence::values(std::size_t layer) const {
  const auto [begin, positions] = self(layer);
  return view(dims_.value_row == 0 ? keys_at(begin, positions) : values_at(begin, positions));
}

kernels::CacheRow Sequence::key_row(std::size_t layer, std::size_t position) {
  const auto [begin, positions] = self(layer);
  return row(keys_at(begin, positions), position);
}

kernels::CacheRow Sequence::value_row(std::size_t layer, std::size_t position) {
  const auto [begin, positions] = self(layer);
  return row(values_at(begin, positions), position);
}

kernels::CacheView Sequence::cross_keys(std::size_t layer) const {
  const auto [begin, positions] = cross(layer);
  return view(keys_at(begin, positions));
}

kernels::CacheView Sequence::cross_values(std::size_t layer) const {
  const auto [begin, positions] = cross(layer);
  return view(values_at(begin, positions));
}

kernels::CacheRow Sequence::cross_key_row(std::size_t layer, std::size_t position) {
  const auto [begin, positions] = cross(layer);
  return row(keys_at(begin, positions), position);
}

kernels::CacheRow Sequence::cross_value_row(std::size_t layer, std::size_t position) {
  const auto [begin, positions] = cross(layer);
  return row(values_at(begin, positions), position);
}

}  // namespace sluice::engine
