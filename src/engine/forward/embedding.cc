#include "engine/forward/embedding.h"

#include "device/space.h"

namespace sluice::engine {

using model::Role;

Embedding::Embedding(const store::Checkpoint& checkpoint, const model::Model& model,
                     const DenseWeights& weights, const fetch::FetchOptions& options,
                     device::Accountant& accountant) {
  if (const std::optional<fetch::RowLayout> layout =
          DenseWeights::embedding_on_disk(checkpoint, model, !weights.on_host())) {
    table_ = std::make_unique<fetch::RowTable>(checkpoint, *layout, options, accountant);
    matrix_ = {layout->format, {1, layout->columns}};
  } else {
    matrix_ = weights.matrix(Role::kEmbedding);
  }
}

Bytes Embedding::resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                                bool dense_on_device) {
  const std::optional<fetch::RowLayout> layout =
      DenseWeights::embedding_on_disk(checkpoint, model, dense_on_device);
  return layout ? fetch::RowTable::resident_bytes(*layout) : 0;
}

void Embedding::rows(std::span<const tokenizer::TokenId> tokens, float* out) {
  const std::size_t columns = matrix_.shape.columns;
  if (table_) {
    table_->read(tokens, [&](std::size_t i, const std::byte* words) {
      codec::MatrixRef row = matrix_;
      row.planes[0] = device::host_space().address(words);
      codec::row_to_float(row, 0, out + i * columns);
    });
    return;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
    codec::row_to_float(matrix_, static_cast<std::size_t>(tokens[i]), out + i * columns);
}

}  // namespace sluice::engine
