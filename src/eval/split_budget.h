// One memory budget for two engines and what is compared.
#pragma once

#include <cstddef>
#include <optional>

#include "base/bytes.h"

namespace sluice::eval {

struct BudgetSplit {
  Bytes whole = 0;
  Bytes model = 0,
        reference = 0;  // budgets of the engines; each counts the process again, so that the sum errs upwards
  Bytes logits = 0;     // of the reference, until the model's come
  Bytes results = 0;    // divergences, also as they are read and written
  std::size_t rows = 0;  // positions that `logits` has room for
};

// Logits get room for a window, or as much as an eighth of `whole` holds; what is left goes to the engines,
// half each, or `reference` bytes to that one. Error(kBudget), (kUsage).
BudgetSplit split_budget(Bytes whole, std::optional<Bytes> reference, std::size_t vocab, std::size_t window,
                         std::size_t predicted);

}  // namespace sluice::eval
