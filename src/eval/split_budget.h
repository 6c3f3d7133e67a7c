// Splits one memory budget between two engines and the compared data.
#pragma once

#include <cstddef>
#include <optional>

#include "base/bytes.h"

namespace sluice::eval {

struct BudgetSplit {
  Bytes whole = 0;
  // Budgets of the engines. Each counts the process again, so that the sum errs upwards.
  Bytes model = 0, reference = 0;
  Bytes logits = 0;      // logits of the reference, until the model's logits come
  Bytes results = 0;     // divergences, including while they are read and written
  std::size_t rows = 0;  // positions that `logits` has room for
};

// Logits get room for a window, or for as much as fits in an eighth of `whole`. The rest goes to the engines
// in equal halves, unless `reference` gives that engine's bytes. Error(kBudget), (kUsage).
BudgetSplit split_budget(Bytes whole, std::optional<Bytes> reference, std::size_t vocab, std::size_t window,
                         std::size_t predicted);

}  // namespace sluice::eval
