#include "engine/forward/embedding.h"

namespace sluice::engine {

using model::Role;

Embedding::Embedding(const store::Checkpoint& checkpoint, const model::Model& model,
                     const DenseWeights& weights, const fetch::FetchOptions& options,
                     device::Accountant& accountant) {
  if (const std::optional<fetch::RowLayout> layout = DenseWeights::embedding_on_disk(checkpoint, model)) {
    table_ = std::make_unique<fetch::RowTable>(checkpoint, *layout, options, accountant);
    matrix_ = {nullptr, layout->dtype, 1, layout->columns};
  } else {
    codes_ = weights.matrix(Role::kEmbedding).int8;
    if (codes_.data == nullptr) matrix_ = weights.words(Role::kEmbedding);
  }
}

Bytes Embedding::resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model) {
  const std::optional<fetch::RowLayout> layout = DenseWeights::embedding_on_disk(checkpoint, model);
  return layout ? fetch::RowTable::resident_bytes(*layout) : 0;
}

void Embedding::rows(std::span<const tokenizer::TokenId> tokens, float* out) {
  if (table_) {
    table_->read(tokens, [&](std::size_t i, const std::byte* words) {
      kernels::row_to_float({words, matrix_.dtype, 1, matrix_.cols}, 0, out + i * matrix_.cols);
    });
    return;
  }
  if (codes_.data != nullptr) {
    const std::size_t columns = codes_.shape.columns;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      codec::dequantise_int8_row({codes_.data, codes_.shape.bytes()}, codes_.shape,
                                 static_cast<std::size_t>(tokens[i]), {out + i * columns, columns});
    return;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
    kernels::row_to_float(matrix_, static_cast<std::size_t>(tokens[i]), out + i * matrix_.cols);
}

}  // namespace sluice::engine
