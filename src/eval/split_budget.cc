#include "eval/split_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::eval {
namespace {

constexpr Bytes kResultBytes = 64;  // per position: the number, its JSON, and its text

}  // namespace

BudgetSplit split_budget(Bytes whole, std::optional<Bytes> reference, std::size_t vocab, std::size_t window,
                         std::size_t predicted) {
  BudgetSplit split;
  split.whole = whole;
  const Bytes row = Bytes{vocab} * sizeof(float);
  split.rows = static_cast<std::size_t>(std::clamp<Bytes>(whole / 8 / row, 1, window));
  split.logits = split.rows * row;
  split.results = kResultBytes * predicted;
  const Bytes beside = split.logits + split.results;
  if (beside >= whole)
    throw Error(ErrorKind::kBudget, "the memory budget is too small for a comparison")
        .in(Setting::kMemory)
        .expected("more than " + format_bytes(beside))
        .found(format_bytes(whole))
        .fix("raise " + Setting::kMemory);
  const Bytes left = whole - beside;
  if (reference && *reference >= left)
    throw Error(ErrorKind::kUsage, "the reference's share leaves nothing to the model")
        .in(Setting::kReferenceMemory)
        .expected(fmt::format("less than {} of a budget of {}", format_bytes(left), format_bytes(whole)))
        .found(format_bytes(*reference));
  split.reference = reference.value_or(left / 2);
  split.model = left - split.reference;
  return split;
}

}  // namespace sluice::eval
