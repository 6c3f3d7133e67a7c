// From token ids to the first hidden state: the input embedding. It is in memory if the output head is the
// same matrix, else on disk, where its rows are read when needed.
#pragma once

#include <memory>
#include <span>

#include "engine/forward/dense/dense_weights.h"
#include "fetch/dense/row_table.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Thread-compatible.
class Embedding {
 public:
  // All arguments must outlive this. `weights` has the matrix if it is in memory; otherwise RowTable charges
  // to `dense`.
  Embedding(const store::Checkpoint& checkpoint, const model::Model& model, const DenseWeights& weights,
            const fetch::FetchOptions& options, device::Accountant& accountant);

  // Writes the `hidden` floats of each token to `out`, one after another. Errors as fetch::RowTable.
  void rows(std::span<const tokenizer::TokenId> tokens, float* out);
  // Its own reads; zeros if the matrix is in memory.
  DiskCounters counters() const { return table_ ? table_->counters() : DiskCounters{}; }

  static Bytes resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model,
                              bool dense_on_device);

 private:
  codec::MatrixRef matrix_;                 // if it is in memory; else one row of it
  std::unique_ptr<fetch::RowTable> table_;  // null: the matrix is in memory
};

}  // namespace sluice::engine
