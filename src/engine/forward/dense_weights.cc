#include "engine/forward/dense_weights.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "device/space.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {
namespace {

using model::Role;
using model::TensorSpec;

constexpr Bytes kDeviceAlignment = 256;

std::uint64_t elements_of(const TensorSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), std::uint64_t{1}, std::multiplies<>());
}

store::StoredPiece locate(const store::Checkpoint& checkpoint, const TensorSpec& spec) {
  return checkpoint.locate({spec.name, 0, elements_of(spec)});
}

bool is_vector(const TensorSpec& spec) { return spec.shape.size() == 1 || model::is_expert_bias(spec.role); }

// Whether the tensor's rows are looked up, its words hashed, or its products made transposed.
bool needs_words(const TensorSpec& spec) {
  return spec.role == Role::kEmbedding || spec.role == Role::kRelativeBias || spec.role == Role::kRouter ||
         spec.role == Role::kKvUp;
}

bool is_packed(const TensorSpec& spec, const store::StoredPiece& stored, DenseView view) {
  return view == DenseView::kPacked && stored.own_columns && !needs_words(spec);
}

// Formats other than words only support products and row look-ups.
void check_format(const store::Checkpoint& checkpoint, const TensorSpec& spec,
                  const store::StoredPiece& stored) {
  if (stored.raw() || stored.coded() || !needs_words(spec) || spec.role == Role::kEmbedding) return;
  throw Error(ErrorKind::kUnsupported, "the engine needs the words of this matrix")
      .in(checkpoint.path())
      .expected(spec.name + " as words")
      .found(std::string(stored.format->name))
      .fix("pack the model again with this version of Sluice");
}

// The format in which a matrix is kept as words, or as it is.
const codec::MatrixFormat* kept_format(const store::StoredPiece& stored) {
  return stored.coded() ? codec::word_format(stored.dtype) : stored.format;
}

// All dense tensors except what embedding_on_disk() leaves out.
std::vector<const TensorSpec*> kept_specs(const store::Checkpoint& checkpoint, const model::Model& model) {
  const bool rows = DenseWeights::embedding_on_disk(checkpoint, model, false).has_value();
  std::vector<const TensorSpec*> specs;
  for (const TensorSpec& spec : model.dense)
    if (!(rows && spec.role == Role::kEmbedding)) specs.push_back(&spec);
  return specs;
}

// Beside dense weights on a device: rows of the embedding are looked up on the host, and the device needs it
// only where it is the output head, too.
bool is_host_embedding(const store::Checkpoint& checkpoint, const model::Model& model,
                       const TensorSpec& spec) {
  return spec.role == Role::kEmbedding && !DenseWeights::embedding_on_disk(checkpoint, model, true);
}
bool is_for_device(const model::Model& model, const TensorSpec& spec) {
  return spec.role != Role::kEmbedding || model.config.tied_head;
}

// Bytes of a matrix as it is kept, in a memory without pages.
Bytes plane_bytes(const TensorSpec& spec, const store::StoredPiece& stored) {
  const codec::MatrixFormat& format = *kept_format(stored);
  Bytes bytes = 0;
  for (std::size_t plane = 0; plane < format.plane_count(); ++plane)
    bytes += round_up(format.plane_bytes({spec.shape[0], spec.shape[1]}, plane), kDeviceAlignment);
  return bytes;
}

// Vectors share buffers: one page each would cost a small model megabytes.
Bytes vector_bytes(const model::Model& model) {
  Bytes bytes = 0;
  for (const TensorSpec& spec : model.dense)
    if (is_vector(spec)) bytes += round_up(elements_of(spec) * sizeof(float), 64);
  return round_up(bytes, kBlockBytes);
}

}  // namespace

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
        vectors_(accountant, device == nullptr ? Account::kDense : Account::kStaging, vector_bytes(model)) {}

  void load(DenseView view) {
    if (device_ != nullptr)
      weights_.device_memory_ =
          device_->memory().allocate(Account::kDense, device_bytes(checkpoint_, model_, view));
    std::vector<const TensorSpec*> specs = kept_specs(checkpoint_, model_);
    std::stable_sort(specs.begin(), specs.end(), [](const TensorSpec* a, const TensorSpec* b) {
      return elements_of(*a) > elements_of(*b);
    });
    for (const TensorSpec* spec : specs) {
      store::StoredPiece stored = locate(checkpoint_, *spec);
      if (is_vector(*spec)) {
        add_vector(*spec, stored);
        continue;
      }
      SLUICE_CHECK(spec->shape.size() == 2, spec->name);
      if (is_packed(*spec, stored, view)) {
        packed_keys_.push_back(key_of(*spec));
        packed_.push_back({spec->name, std::move(stored)});
        continue;
      }
      check_format(checkpoint_, *spec, stored);
      add_matrix(*spec, stored);
    }
    add_packed();
    finish_vectors();
  }

 private:
  using Account = device::Account;

  static Key key_of(const TensorSpec& spec) { return {spec.role, spec.layer}; }

  fetch::ResidentPiece piece_of(const TensorSpec& spec, const store::StoredPiece& stored, Account account) {
    try {
      return fetch::load_piece(stored, files_, decoder_, accountant_, account);
    } catch (Error& error) {
      if (error.kind() == ErrorKind::kCorrupt) fetch::in_tensor(error, spec.name);
      throw;
    }
  }

  void add_vector(const TensorSpec& spec, const store::StoredPiece& stored) {
    const fetch::ResidentPiece piece = piece_of(spec, stored, Account::kStaging);
    codec::MatrixRef words = piece.matrix;
    words.shape = {1, piece.elements};
    float* const place = vectors_.as<float>() + vector_floats_;
    codec::row_to_float(words, 0, place);
    weights_.vectors_[key_of(spec)] = {kernels::floats_at(place), static_cast<std::size_t>(piece.elements)};
    vector_floats_ += round_up(piece.elements * sizeof(float), 64) / sizeof(float);
  }

  void add_matrix(const TensorSpec& spec, const store::StoredPiece& stored) {
    const bool stays = device_ == nullptr || is_host_embedding(checkpoint_, model_, spec);
    fetch::ResidentPiece piece = piece_of(spec, stored, stays ? Account::kDense : Account::kStaging);
    codec::MatrixRef matrix = piece.matrix;
    matrix.shape = {spec.shape[0], spec.shape[1]};
    if (stays) {
      weights_.pieces_.push_back(std::move(piece));
      weights_.matrices_.emplace(key_of(spec), matrix);
    }
    if (device_ == nullptr || !is_for_device(model_, spec)) return;
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      matrix.planes[plane] = send({device::host_space().pointer(matrix.planes[plane]),
                                   matrix.format->plane_bytes(matrix.shape, plane)});
    weights_.matrices_.emplace(spec.role == Role::kEmbedding ? Key{Role::kHead, -1} : key_of(spec), matrix);
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
      std::vector<fetch::PackedPiece> piece =
          fetch::load_packed({&packed_[i], 1}, files_, decoder_, accountant_, Account::kStaging);
      fetch::check_codes(piece.front(), decoder_);  // nobody looks for the place of damage over there
      const device::HostBuffer& buffer = piece.front().buffer;
      const device::Address begin = send({buffer.data(), buffer.size()});
      weights_.packed_.push_back({piece.front().tensor, {}, std::move(piece.front().place)});
      add_planes(packed_keys_[i], weights_.packed_.back(), begin);
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
    if (device_ != nullptr) {
      const device::Address begin = send({vectors_.data(), vector_floats_ * sizeof(float)});
      const auto* const here = reinterpret_cast<const std::byte*>(vectors_.as<float>());
      for (auto& [key, vector] : weights_.vectors_)
        vector.data.at = begin + static_cast<Bytes>(device::host_space().pointer(vector.data.at) - here);
    } else {
      weights_.vector_buffers_.push_back(std::move(vectors_));
    }
  }

  // To the next place in the device's memory; waits until it is there.
  device::Address send(std::span<const std::byte> bytes) {
    const device::Address at = weights_.device_memory_.address() + sent_;
    sent_ += round_up(bytes.size(), kDeviceAlignment);
    SLUICE_CHECK(sent_ <= weights_.device_memory_.size(), std::to_string(sent_));
    device_->link().copy(bytes, at, device::Traffic::kDemand).event().wait();
    return at;
  }

  DenseWeights& weights_;
  const store::Checkpoint& checkpoint_;
  const model::Model& model_;
  fetch::WeightFiles& files_;
  fetch::PieceDecoder& decoder_;
  device::Accountant& accountant_;
  device::Device* const device_;
  device::HostBuffer vectors_;
  std::size_t vector_floats_ = 0;
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
  Bytes bytes = on_device ? 0 : vector_bytes(model);
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    if (is_vector(*spec) || (on_device && !is_host_embedding(checkpoint, model, *spec))) continue;
    const store::StoredPiece piece = locate(checkpoint, *spec);
    bytes += is_packed(*spec, piece, view) ? fetch::packed_bytes(piece) : fetch::resident_bytes(piece);
  }
  return bytes;
}

Bytes DenseWeights::load_staging_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                       DenseView view, bool on_device) {
  Bytes most = 0;
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    const store::StoredPiece piece = locate(checkpoint, *spec);
    const bool packed = is_packed(*spec, piece, view), passes = on_device || is_vector(*spec);
    const Bytes own = packed ? fetch::packed_bytes(piece) : fetch::resident_bytes(piece);
    if (packed && !on_device) continue;
    most = std::max(
        most, (packed ? 0 : round_up(fetch::load_staging_bytes(piece), kBlockBytes)) + (passes ? own : 0));
  }
  return most + (on_device ? vector_bytes(model) : 0);
}

Bytes DenseWeights::device_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                 DenseView view) {
  Bytes bytes = vector_bytes(model);
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    if (is_vector(*spec) || !is_for_device(model, *spec)) continue;
    const store::StoredPiece piece = locate(checkpoint, *spec);
    bytes += is_packed(*spec, piece, view) ? fetch::packed_bytes(piece) : plane_bytes(*spec, piece);
  }
  return bytes;
}

std::vector<const codec::MatrixFormat*> DenseWeights::formats(const store::Checkpoint& checkpoint,
                                                              const model::Model& model) {
  std::vector<const codec::MatrixFormat*> formats;
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    if (is_vector(*spec) || spec->role == Role::kRouter || spec->role == Role::kRelativeBias) continue;
    const codec::MatrixFormat* const format = kept_format(locate(checkpoint, *spec));
    if (std::ranges::find(formats, format) == formats.end()) formats.push_back(format);
  }
  return formats;
}

Bytes DenseWeights::either_way_bytes(const store::Checkpoint& checkpoint, const model::Model& model) {
  Bytes bytes = 0;
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    const store::StoredPiece piece = locate(checkpoint, *spec);
    if (is_packed(*spec, piece, DenseView::kPacked)) bytes += kept_format(piece)->bytes({1, piece.elements});
  }
  return bytes;
}

}  // namespace sluice::engine
