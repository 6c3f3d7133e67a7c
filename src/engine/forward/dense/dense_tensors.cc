#include "engine/forward/dense/dense_tensors.h"

#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"
#include "fetch/dense/dense_loader.h"
#include "fetch/dense/dense_parts.h"

namespace sluice::engine {

using model::Role;
using model::TensorSpec;

namespace {

std::uint64_t elements_in(const TensorSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), std::uint64_t{1}, std::multiplies<>());
}

bool is_dense_vector(const TensorSpec& spec) {
  return spec.shape.size() == 1 || model::is_expert_bias(spec.role);
}

// Whether the tensor's rows are looked up, its words hashed, or its products made transposed.
bool needs_words(const TensorSpec& spec) {
  return spec.role == Role::kEmbedding || spec.role == Role::kRelativeBias || spec.role == Role::kRouter ||
         spec.role == Role::kKvUp;
}

// Whether products are made with some of the tensor's rows, which tiles share.
bool is_cut(const TensorSpec& spec) { return spec.role == Role::kKeyUp || spec.role == Role::kValueUp; }

}  // namespace

std::uint64_t DenseTensor::elements() const { return elements_in(*spec); }

bool DenseTensor::is_vector() const { return is_dense_vector(*spec); }

bool DenseTensor::is_packed(DenseView view) const {
  return view == DenseView::kPacked && stored.own_columns && !needs_words(*spec) && !is_cut(*spec);
}

const codec::MatrixFormat* DenseTensor::format() const {
  return stored.coded() ? codec::word_format(stored.dtype) : stored.format;
}

codec::MatrixShape DenseTensor::shape() const { return {spec->shape[0], spec->shape[1]}; }

Bytes DenseTensor::device_bytes(DenseView view) const {
  if (is_packed(view)) return fetch::packed_bytes(stored);
  Bytes bytes = 0;
  for (std::size_t plane = 0; plane < format()->plane_count(); ++plane)
    bytes += round_up(format()->plane_bytes(shape(), plane), kDeviceAlignment);
  return bytes;
}

Bytes DenseTensor::staging_bytes(DenseView view, bool to_device) const {
  const bool packed = is_packed(view), stays = !is_vector() && (!to_device || host_needs);
  const Bytes meanwhile = packed ? 0 : round_up(fetch::load_staging_bytes(stored), kBlockBytes);
  if (stays) return meanwhile;
  if (!is_vector() && fetch::has_parts(stored))
    return fetch::parts_staging_bytes(stored, packed ? fetch::PartForm::kStored : fetch::PartForm::kWords);
  return meanwhile + (packed ? fetch::packed_bytes(stored) : fetch::resident_bytes(stored));
}

// Formats other than words only support products and row look-ups.
void DenseTensor::check_format(const store::Checkpoint& checkpoint) const {
  if (stored.raw() || stored.coded() || !needs_words(*spec) || spec->role == Role::kEmbedding) return;
  throw Error(ErrorKind::kUnsupported, "the engine needs the words of this matrix")
      .in(checkpoint.path())
      .expected(spec->name + " as words")
      .found(std::string(stored.format->name))
      .fix("pack the model again with this version of Sluice");
}

std::vector<DenseTensor> dense_tensors(const store::Checkpoint& checkpoint, const model::Model& model) {
  const bool rows = DenseWeights::embedding_on_disk(checkpoint, model, false).has_value(),
             rows_beside_device = DenseWeights::embedding_on_disk(checkpoint, model, true).has_value();
  std::vector<DenseTensor> tensors;
  for (const TensorSpec& spec : model.dense) {
    const bool embedding = spec.role == Role::kEmbedding, bias = spec.role == Role::kRelativeBias;
    if (rows && embedding) continue;
    tensors.push_back({.spec = &spec,
                       .stored = checkpoint.locate({spec.name, 0, elements_in(spec)}),
                       .host_needs = bias || (embedding && !rows_beside_device),
                       .device_needs = !bias && (!embedding || model.config.tied_head)});
  }
  return tensors;
}

namespace {

Bytes vector_bytes(const model::Model& model, bool of_experts) {
  Bytes bytes = 0;
  for (const TensorSpec& spec : model.dense)
    if (is_dense_vector(spec) && model::is_expert_bias(spec.role) == of_experts)
      bytes += dense_vector_bytes(elements_in(spec));
  return round_up(bytes, kBlockBytes);
}

}  // namespace

Bytes dense_vector_bytes(std::uint64_t elements) {
  return round_up(codec::kFormatF32.bytes({1, elements}), 64);
}
Bytes dense_vector_bytes(const model::Model& model) { return vector_bytes(model, false); }
Bytes expert_bias_bytes(const model::Model& model) { return vector_bytes(model, true); }

}  // namespace sluice::engine
