// Weights that every token uses: loaded once, kept as the checkpoint's words or in their stored form
// (codes of 8 bits always are). Leaves out an input embedding that can be read row by row (embedding.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codec/matrix_format.h"
#include "device/device.h"
#include "fetch/dense/dense_loader.h"
#include "fetch/dense/row_table.h"
#include "kernels/ops/floats.h"
#include "kernels/products/input_form.h"
#include "model/architecture.h"

namespace sluice::engine {

// How matrices are kept that a store has in tiles with their own columns, and that only products use.
enum class DenseView {
  kWords,   // as the checkpoint's words
  kPacked,  // in their stored form
};

// Immutable after loading; thread-safe. Matrices keep their stored type; vectors (norms, biases) are fp32.
class DenseWeights {
 public:
  // Loads words first, the largest first, so that staging is over before the budget fills. Errors as
  // fetch::load_piece; (kCorrupt) also names the tensor.
  // `device`: whose memory they are loaded to, through the host's `staging`; it must outlive this. Null: the
  // host's memory.
  DenseWeights(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view,
               fetch::WeightFiles& files, fetch::PieceDecoder& decoder, device::Accountant& accountant,
               device::Device* device);

  bool on_host() const { return !device_memory_; }

  // A matrix for products. A bug of ours if the architecture has no such tensor.
  const codec::MatrixRef& matrix(model::Role role, std::int32_t layer = -1) const;
  bool has(model::Role role, std::int32_t layer = -1) const { return matrices_.contains({role, layer}); }
  // The words of a role that always is in words: the embedding (unless it is in codes of 8 bits), routers,
  // relative biases, and the matrix that absorbed MLA multiplies transposed.
  const codec::MatrixRef& words(model::Role role, std::int32_t layer = -1) const;
  kernels::Vector vector(model::Role role, std::int32_t layer = -1) const;
  // Empty if the architecture has no such vector (biases). Those of experts are always the host's.
  kernels::Vector vector_or_empty(model::Role role, std::int32_t layer) const;

  // The forms of activations that products with these matrices read.
  const kernels::InputForms& input_forms() const { return input_forms_; }

  // Error(kCorrupt) naming tensor, file and bytes if a matrix in its stored form has impossible codes:
  // kernels find such codes but do not know where they came from.
  void check_codes(const fetch::PieceDecoder& decoder) const;

  // How rows of the input embedding are read, if it is not kept here.
  static std::optional<fetch::RowLayout> embedding_on_disk(const store::Checkpoint& checkpoint,
                                                           const model::Model& model, bool on_device);
  // Bytes that loading charges to `dense` of the host, and the most that it stages; and the bytes of the
  // block in the device's memory.
  static Bytes resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view,
                              bool on_device = false);
  static Bytes load_staging_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                  DenseView view, bool on_device);
  static Bytes device_bytes(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view);
  // What kernels of a GPU need to make words of the packed matrices that one operation multiplies, at most:
  // gate and up of an MLP, or another one. Few tokens are multiplied with the output head.
  static Bytes recovered_bytes_at_once(const store::Checkpoint& checkpoint, const model::Model& model,
                                       DenseView view);
  // The formats in which matrices may be multiplied with the activations of a layer, each once. (Routers and
  // relative biases are not.)
  static std::vector<const codec::MatrixFormat*> formats(const store::Checkpoint& checkpoint,
                                                         const model::Model& model);
  // Bytes of the matrices that DenseView decides on, as words; 0: there are none.
  static Bytes either_way_bytes(const store::Checkpoint& checkpoint, const model::Model& model);

 private:
  using Key = std::pair<model::Role, std::int32_t>;
  class Loader;

  device::Block device_memory_;                     // owns everything but an embedding, or is empty
  std::vector<fetch::ResidentPiece> pieces_;        // own the matrices' words
  std::vector<fetch::PackedPiece> packed_;          // and planes
  std::vector<device::HostBuffer> vector_buffers_;  // own the vectors
  std::map<Key, codec::MatrixRef> matrices_;
  kernels::InputForms input_forms_;
  std::map<Key, kernels::Vector> vectors_;
};

}  // namespace sluice::engine
