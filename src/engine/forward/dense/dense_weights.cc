#include "engine/forward/dense/dense_weights.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "device/space.h"
#include "engine/forward/dense/dense_tensors.h"
#include "fetch/dense/dense_parts.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {

using model::Role;
using model::TensorSpec;

// Loads to one of the memories.
class DenseWeights::Loader {
 public:
  Loader(DenseWeights& weights, const store::Checkpoint& checkpoint, const model::Model& model,
         fetch::WeightFiles& files, fetch::PieceDecoder& decoder, device::Accountant& accountant,
         device::Device* device)
      : weights_(weights),
        checkpoint_(checkpoint),
        model_(model),
        files_(files),
        decoder_(decoder),
        accountant_(accountant),
        device_(device),
        vectors_{
            {accountant, device == nullptr ? Account::kDense : Account::kStaging, dense_vector_bytes(model)}},
        biases_{{accountant, Account::kDense, expert_bias_bytes(model)}} {}

  void load(DenseView view) {
    if (device_ != nullptr)
      weights_.device_memory_ =
          device_->memory().allocate(Account::kDense, device_bytes(checkpoint_, model_, view));
    std::vector<DenseTensor> tensors = dense_tensors(checkpoint_, model_);
    std::ranges::stable_sort(tensors, std::ranges::greater(), &DenseTensor::elements);
    for (DenseTensor& tensor : tensors) {
      if (tensor.is_vector()) {
        add_vector(tensor);
        continue;
      }
      SLUICE_CHECK(tensor.spec->shape.size() == 2, tensor.spec->name);
      if (tensor.is_packed(view)) {
        packed_keys_.push_back(key_of(*tensor.spec));
        packed_.push_back({tensor.spec->name, std::move(tensor.stored)});
        continue;
      }
      tensor.check_format(checkpoint_);
      add_matrix(tensor);
    }
    add_packed();
    finish_vectors();
  }

 private:
  using Account = device::Account;

  static Key key_of(const TensorSpec& spec) { return {spec.role, spec.layer}; }
  // On a device an embedding is there as the output head.
  static Key key_there(const TensorSpec& spec) {
    return spec.role == Role::kEmbedding ? Key{Role::kHead, -1} : key_of(spec);
  }

  // Errors of `work` about bytes name the tensor.
  template <class Work>
  static auto naming(const std::string& tensor, Work&& work) try {
    return work();
  } catch (Error& error) {
    if (error.kind() == ErrorKind::kCorrupt) fetch::in_tensor(error, tensor);
    throw;
  }

  fetch::ResidentPiece piece_of(const DenseTensor& tensor, Account account) {
    return naming(tensor.spec->name,
                  [&] { return fetch::load_piece(tensor.stored, files_, decoder_, accountant_, account); });
  }

  void add_vector(const DenseTensor& tensor) {
    const fetch::ResidentPiece piece = piece_of(tensor, Account::kStaging);
    codec::MatrixRef words = piece.matrix;
    words.shape = {1, piece.elements};
    Vectors& vectors = model::is_expert_bias(tensor.spec->role) ? biases_ : vectors_;
    auto* const place = reinterpret_cast<float*>(vectors.buffer.data() + vectors.used);
    codec::row_to_float(words, 0, place);
    weights_.vectors_[key_of(*tensor.spec)] = {kernels::floats_at(place),
                                               static_cast<std::size_t>(piece.elements)};
    vectors.used += dense_vector_bytes(piece.elements);
  }

  void add_matrix(const DenseTensor& tensor) {
    const bool stays = device_ == nullptr || tensor.host_needs;
    if (!stays && fetch::has_parts(tensor.stored)) return add_in_parts(tensor);
    fetch::ResidentPiece piece = piece_of(tensor, stays ? Account::kDense : Account::kStaging);
    codec::MatrixRef matrix = piece.matrix;
    matrix.shape = tensor.shape();
    if (stays) {
      weights_.pieces_.push_back(std::move(piece));
      weights_.matrices_.emplace(key_of(*tensor.spec), matrix);
    }
    if (device_ == nullptr || !tensor.device_needs) return;
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      matrix.planes[plane] = send({device::host_space().pointer(matrix.planes[plane]),
                                   matrix.format->plane_bytes(matrix.shape, plane)});
    weights_.matrices_.emplace(key_there(*tensor.spec), matrix);
  }

  void add_in_parts(const DenseTensor& tensor) {
    codec::MatrixRef matrix{tensor.format(), tensor.shape(), {}, {}};
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      matrix.planes[plane] = reserve(matrix.format->plane_bytes(matrix.shape, plane));
    send_parts(tensor.spec->name, tensor.stored, fetch::PartForm::kWords, matrix);
    weights_.matrices_.emplace(key_there(*tensor.spec), matrix);
  }

  void add_packed() {
    if (device_ == nullptr) {
      weights_.packed_ = fetch::load_packed(packed_, files_, decoder_, accountant_, Account::kDense);
      for (std::size_t i = 0; i < packed_.size(); ++i)
        add_planes(packed_keys_[i], weights_.packed_[i],
                   device::host_space().address(weights_.packed_[i].buffer.data()));
      return;
    }
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      const auto& [tensor, stored] = packed_[i];
      const device::Address begin = reserve(fetch::packed_bytes(stored));
      weights_.packed_.push_back({tensor, {}, fetch::packed_place(stored)});
      add_planes(packed_keys_[i], weights_.packed_.back(), begin);
      // Nobody looks for the place of damage over there: codes are checked on the way.
      send_parts(tensor, stored, fetch::PartForm::kStored, weights_.matrices_.at(packed_keys_[i]));
    }
    // References to chunks point into what has stopped moving.
    for (std::size_t i = 0; i < packed_.size(); ++i)
      weights_.matrices_.at(packed_keys_[i]).chunks = weights_.packed_[i].place.chunks;
  }

  void add_planes(const Key& key, const fetch::PackedPiece& piece, device::Address begin) {
    const fetch::PiecePlace& place = piece.place;
    weights_.matrices_.emplace(
        key,
        codec::MatrixRef{place.format, place.shape, {begin + place.planes[0].place, begin}, place.chunks});
  }

  void finish_vectors() {
    weights_.vector_buffers_.push_back(std::move(biases_.buffer));
    if (device_ == nullptr) {
      weights_.vector_buffers_.push_back(std::move(vectors_.buffer));
      return;
    }
    const device::HostBuffer& buffer = vectors_.buffer;
    const device::Address begin = send({buffer.data(), vectors_.used});
    for (auto& [key, vector] : weights_.vectors_)
      if (!model::is_expert_bias(key.first))
        vector.data.at =
            begin + static_cast<Bytes>(device::host_space().pointer(vector.data.at) - buffer.data());
  }

  // The next place in the device's memory.
  device::Address reserve(Bytes bytes) {
    const device::Address at = weights_.device_memory_.address() + sent_;
    sent_ += round_up(bytes, kDeviceAlignment);
    SLUICE_CHECK(sent_ <= weights_.device_memory_.size(), std::to_string(sent_));
    return at;
  }
  // Waits until it is there.
  void copy(std::span<const std::byte> bytes, device::Address at) {
    device_->link().copy(bytes, at, device::Traffic::kDemand).event().wait();
  }
  device::Address send(std::span<const std::byte> bytes) {
    const device::Address at = reserve(bytes.size());
    copy(bytes, at);
    return at;
  }
  // To the planes of `matrix`.
  void send_parts(const std::string& tensor, const store::StoredPiece& stored, fetch::PartForm form,
                  const codec::MatrixRef& matrix) {
    naming(tensor, [&] {
      fetch::load_in_parts(stored, form, files_, decoder_, accountant_, [&](const fetch::TensorPart& part) {
        copy(part.bytes, matrix.planes[part.plane] + part.at);
      });
    });
  }

  DenseWeights& weights_;
  const store::Checkpoint& checkpoint_;
  const model::Model& model_;
  fetch::WeightFiles& files_;
  fetch::PieceDecoder& decoder_;
  device::Accountant& accountant_;
  device::Device* const device_;
  struct Vectors {
    device::HostBuffer buffer;
    Bytes used = 0;
  };
  Vectors vectors_, biases_;  // biases: of experts
  std::vector<Key> packed_keys_;
  std::vector<fetch::NamedPiece> packed_;
  Bytes sent_ = 0;
};

DenseWeights::DenseWeights(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view,
                           fetch::WeightFiles& files, fetch::PieceDecoder& decoder,
                           device::Accountant& accountant, device::Device* device) {
  Loader(*this, checkpoint, model, files, decoder, accountant, device).load(view);
  for (const auto& [key, matrix] : matrices_)
    if (matrix.format->input) input_forms_.add(*matrix.format->input);
  if (model.config.tied_head && device == nullptr)
    matrices_.emplace(Key{Role::kHead, -1}, matrices_.at({Role::kEmbedding, -1}));
}

const codec::MatrixRef& DenseWeights::matrix(Role role, std::int32_t layer) const {
  const auto found = matrices_.find({role, layer});
  SLUICE_CHECK(found != matrices_.end(), model::role_name(role));
  return found->second;
}

const codec::MatrixRef& DenseWeights::words(Role role, std::int32_t layer) const {
  const codec::MatrixRef& words = matrix(role, layer);
  SLUICE_CHECK(words.format->words, model::role_name(role));
  return words;
}

kernels::Vector DenseWeights::vector(Role role, std::int32_t layer) const {
  const auto found = vectors_.find({role, layer});
  SLUICE_CHECK(found != vectors_.end(), model::role_name(role));
  return found->second;
}

kernels::Vector DenseWeights::vector_or_empty(Role role, std::int32_t layer) const {
  const auto found = vectors_.find({role, layer});
  return found == vectors_.end() ? kernels::Vector{} : found->second;
}

void DenseWeights::check_codes(const fetch::PieceDecoder& decoder) const {
  if (!on_host()) return;  // they were checked before they went there
  for (const fetch::PackedPiece& piece : packed_) fetch::check_codes(piece, decoder);
}

std::optional<fetch::RowLayout> DenseWeights::embedding_on_disk(const store::Checkpoint& checkpoint,
                                                                const model::Model& model, bool on_device) {
  const TensorSpec* const spec = model.find(Role::kEmbedding);
  SLUICE_CHECK(spec != nullptr, model.config.model_type);
  return model.config.tied_head && !on_device ? std::nullopt : fetch::row_layout(checkpoint, spec->name);
}

Bytes DenseWeights::resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                   DenseView view, bool on_device) {
  Bytes bytes = expert_bias_bytes(model) + (on_device ? 0 : dense_vector_bytes(model));
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model)) {
    if (tensor.is_vector() || (on_device && !tensor.host_needs)) continue;
    bytes +=
        tensor.is_packed(view) ? fetch::packed_bytes(tensor.stored) : fetch::resident_bytes(tensor.stored);
  }
  return bytes;
}

Bytes DenseWeights::load_staging_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                       DenseView view, bool on_device) {
  Bytes most = 0;
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model))
    most = std::max(most, tensor.staging_bytes(view, on_device));
  return most + (on_device ? dense_vector_bytes(model) : 0);
}

Bytes DenseWeights::device_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                 DenseView view) {
  Bytes bytes = dense_vector_bytes(model);
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model))
    if (!tensor.is_vector() && tensor.device_needs) bytes += tensor.device_bytes(view);
  return bytes;
}

Bytes DenseWeights::recovered_bytes_at_once(const store::Checkpoint& checkpoint, const model::Model& model,
                                            DenseView view) {
  Bytes most = 0;
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model)) {
    const Role role = tensor.spec->role;
    if (tensor.is_vector() || role == Role::kHead || !tensor.is_packed(view)) continue;
    const codec::MatrixShape shape = tensor.shape();
    const bool has_up = role == Role::kMlpGate || role == Role::kSharedGate;  // up has the same shape
    most = std::max(most, (has_up ? 2 : 1) * kernels::recovered_bytes(shape.rows, shape.columns));
  }
  return most;
}

std::vector<const codec::MatrixFormat*> DenseWeights::formats(const store::Checkpoint& checkpoint,
                                                              const model::Model& model) {
  std::vector<const codec::MatrixFormat*> formats;
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model)) {
    const Role role = tensor.spec->role;
    if (tensor.is_vector() || role == Role::kRouter || role == Role::kRelativeBias) continue;
    if (std::ranges::find(formats, tensor.format()) == formats.end()) formats.push_back(tensor.format());
  }
  return formats;
}

Bytes DenseWeights::either_way_bytes(const store::Checkpoint& checkpoint, const model::Model& model) {
  Bytes bytes = 0;
  for (const DenseTensor& tensor : dense_tensors(checkpoint, model))
    if (tensor.is_packed(DenseView::kPacked)) bytes += tensor.format()->bytes({1, tensor.stored.elements});
  return bytes;
}

}  // namespace sluice::engine
