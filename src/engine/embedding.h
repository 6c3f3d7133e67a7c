// From token ids to the first hidden state: the input embedding, in memory where the output head is the same
// matrix, else on disk, where its rows are read as they are needed.
#pragma once

#include <memory>
#include <span>

#include "engine/dense_weights.h"
#include "fetch/row_table.h"
#include "model/tokenizer.h"

namespace sluice::engine {

// Thread-compatible.
class Embedding {
 public:
  // All must outlive this. What is kept in memory is in `weights`; or RowTable charges to `dense`.
  Embedding(const store::Checkpoint& checkpoint, const model::Model& model, const DenseWeights& weights,
            const fetch::FetchOptions& options, device::Accountant& accountant);

  // hidden floats of each token to `out`, one after another. Error as fetch::RowTable.
  void rows(std::span<const model::TokenId> tokens, float* out);
  // Reads of its own; none if it is in memory.
  DiskCounters counters() const { return table_ ? table_->counters() : DiskCounters{}; }

  static Bytes resident_bytes(const store::Checkpoint& checkpoint, const model::Model& model);

 private:
  kernels::Weight matrix_;
  kernels::Int8Weight codes_;               // instead of it, where the matrix is in codes of 8 bits
  std::unique_ptr<fetch::RowTable> table_;  // null: in memory
};

}  // namespace sluice::engine
