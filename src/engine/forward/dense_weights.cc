#include "engine/forward/dense_weights.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "device/space.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {
namespace {

using model::Role;
using model::TensorSpec;

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
  const bool rows = DenseWeights::embedding_on_disk(checkpoint, model).has_value();
  std::vector<const TensorSpec*> specs;
  for (const TensorSpec& spec : model.dense)
    if (!(rows && spec.role == Role::kEmbedding)) specs.push_back(&spec);
  return specs;
}

// Vectors share buffers: one page each would cost a small model megabytes.
Bytes vector_bytes(const model::Model& model) {
  Bytes bytes = 0;
  for (const TensorSpec& spec : model.dense)
    if (is_vector(spec)) bytes += round_up(elements_of(spec) * sizeof(float), 64);
  return round_up(bytes, kBlockBytes);
}

}  // namespace

DenseWeights::DenseWeights(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view,
                           fetch::WeightFiles& files, fetch::PieceDecoder& decoder,
                           device::Accountant& accountant) {
  using device::Account;
  vector_buffers_.emplace_back(accountant, Account::kDense, vector_bytes(model));
  float* vector_place = vector_buffers_.back().as<float>();

  const auto load = [&](const TensorSpec& spec, const store::StoredPiece& stored, Account account) {
    try {
      return fetch::load_piece(stored, files, decoder, accountant, account);
    } catch (Error& error) {
      if (error.kind() == ErrorKind::kCorrupt) fetch::in_tensor(error, spec.name);
      throw;
    }
  };
  std::vector<const TensorSpec*> specs = kept_specs(checkpoint, model);
  std::stable_sort(specs.begin(), specs.end(), [](const TensorSpec* a, const TensorSpec* b) {
    return elements_of(*a) > elements_of(*b);
  });
  std::vector<Key> packed_keys;
  std::vector<fetch::NamedPiece> packed;
  for (const TensorSpec* spec : specs) {
    const Key key{spec->role, spec->layer};
    store::StoredPiece stored = locate(checkpoint, *spec);
    if (is_vector(*spec)) {
      const fetch::ResidentPiece piece = load(*spec, stored, Account::kStaging);
      codec::MatrixRef words = piece.matrix;
      words.shape = {1, piece.elements};
      codec::row_to_float(words, 0, vector_place);
      vectors_[key] = {kernels::floats_at(vector_place), static_cast<std::size_t>(piece.elements)};
      vector_place += round_up(piece.elements * sizeof(float), 64) / sizeof(float);
      continue;
    }
    SLUICE_CHECK(spec->shape.size() == 2, spec->name);
    if (is_packed(*spec, stored, view)) {
      packed_keys.push_back(key);
      packed.push_back({spec->name, std::move(stored)});
      continue;
    }
    check_format(checkpoint, *spec, stored);
    pieces_.push_back(load(*spec, stored, Account::kDense));
    codec::MatrixRef& matrix = matrices_.emplace(key, pieces_.back().matrix).first->second;
    matrix.shape = {spec->shape[0], spec->shape[1]};
  }
  packed_ = fetch::load_packed(packed, files, decoder, accountant, Account::kDense);
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    const fetch::PiecePlace& place = packed_[i].place;
    const device::Address planes = device::host_space().address(packed_[i].buffer.data());
    matrices_.emplace(
        packed_keys[i],
        codec::MatrixRef{place.format, place.shape, {planes + place.planes[0].place, planes}, place.chunks});
  }
  for (const auto& [key, matrix] : matrices_)
    if (matrix.format->input) input_forms_.add(*matrix.format->input);
  if (model.config.tied_head) matrices_.emplace(Key{Role::kHead, -1}, matrices_.at({Role::kEmbedding, -1}));
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
  for (const fetch::PackedPiece& piece : packed_) fetch::check_codes(piece, decoder);
}

std::optional<fetch::RowLayout> DenseWeights::embedding_on_disk(const store::Checkpoint& checkpoint,
                                                                const model::Model& model) {
  const TensorSpec* const spec = model.find(Role::kEmbedding);
  SLUICE_CHECK(spec != nullptr, model.config.model_type);
  return model.config.tied_head ? std::nullopt : fetch::row_layout(checkpoint, spec->name);
}

Bytes DenseWeights::resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                   DenseView view) {
  Bytes bytes = vector_bytes(model);
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    if (is_vector(*spec)) continue;
    const store::StoredPiece piece = locate(checkpoint, *spec);
    bytes += is_packed(*spec, piece, view) ? fetch::packed_bytes(piece) : fetch::resident_bytes(piece);
  }
  return bytes;
}

Bytes DenseWeights::load_staging_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                       DenseView view) {
  Bytes most = 0;
  for (const TensorSpec* spec : kept_specs(checkpoint, model)) {
    const store::StoredPiece piece = locate(checkpoint, *spec);
    if (is_packed(*spec, piece, view)) continue;
    most = std::max(most, round_up(fetch::load_staging_bytes(piece), kBlockBytes) +
                              (is_vector(*spec) ? fetch::resident_bytes(piece) : 0));
  }
  return most;
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
