// Weights that every token uses: loaded once, kept as the checkpoint's words or as a store has them (codes of
// 8 bits always). All but an input embedding that can be read row by row (embedding.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fetch/dense_loader.h"
#include "fetch/row_table.h"
#include "kernels/weight_view.h"
#include "model/architecture.h"

namespace sluice::engine {

// How those matrices are kept that a store has in tiles with their own columns, and that nothing but products
// is made with.
enum class DenseView {
  kWords,   // as the checkpoint's words
  kPacked,  // as they are stored
};

// Immutable after loading; thread-safe. Matrices keep their stored type; vectors (norms, biases) are fp32.
class DenseWeights {
 public:
  // Words first, the largest first, so that staging is over before the budget fills. Error as
  // fetch::load_piece; (kCorrupt) names the tensor, too.
  DenseWeights(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view,
               fetch::WeightFiles& files, fetch::PieceDecoder& decoder, device::Accountant& accountant);

  // To multiply with. Our own bug if the architecture has no such tensor.
  const kernels::WeightView& matrix(model::Role role, std::int32_t layer = -1) const;
  // The words of one of the roles that always are words: the embedding (unless it is in codes of 8 bits),
  // routers, relative biases, and what absorbed MLA multiplies with transposed.
  const kernels::Weight& words(model::Role role, std::int32_t layer = -1) const;
  std::span<const float> vector(model::Role role, std::int32_t layer = -1) const;
  // Empty if the architecture has none (biases).
  std::span<const float> vector_or_empty(model::Role role, std::int32_t layer) const;

  // Error(kCorrupt) naming tensor, file and bytes if a matrix that is kept as it is stored has impossible
  // codes: kernels, which find that, do not know where it came from.
  void check_codes(const fetch::PieceDecoder& decoder) const;

  // How the rows of the input embedding are read, if it is not kept here.
  static std::optional<fetch::RowLayout> embedding_on_disk(const store::Checkpoint& checkpoint,
                                                           const model::Model& model);
  // What loading charges to `dense`, and the most it stages.
  static Bytes resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model, DenseView view);
  static Bytes load_staging_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                  DenseView view);
  // Whether words of a matrix that rounded activations are multiplied with are other than BF16.
  static bool has_wide_words(const store::Checkpoint& checkpoint, const model::Model& model);
  // Bytes of the words of what DenseView decides on; 0: nothing.
  static Bytes either_way_bytes(const store::Checkpoint& checkpoint, const model::Model& model);

 private:
  using Key = std::pair<model::Role, std::int32_t>;
  std::vector<fetch::ResidentPiece> pieces_;  // own the matrices' words
  std::vector<fetch::PackedPiece> packed_;    // and planes
  std::vector<std::vector<kernels::PackedChunk>> chunks_;
  std::vector<device::HostBuffer> vector_buffers_;  // own the vectors
  std::map<Key, kernels::WeightView> matrices_;
  std::map<Key, std::span<const float>> vectors_;
};

}  // namespace sluice::engine
