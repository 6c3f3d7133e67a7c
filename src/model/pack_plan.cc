#include "model/pack_plan.h"

#include <algorithm>
#include <string>

#include "model/architecture.h"

namespace sluice::model {
namespace {

// Rows of the input embedding that are read together: a read of this many takes about the time of a read of
// one.
constexpr std::uint64_t kRangeElements = 16 * 1024;

bool is_exact(Role role) {
  switch (role) {
    // These choose the experts, and weigh shared experts: rounding them is not worth it.
    case Role::kRouter:
    case Role::kSharedExpertGate:
    // Also transposed or spread, not only multiplied with.
    case Role::kKvUp:
    case Role::kKeyUp:
    case Role::kValueUp:
    case Role::kRelativeBias:
      return true;
    default:
      return is_expert_bias(role);  // no matrices
  }
}

// The embedding is read row by row, which must be words.
bool is_read_in_rows(const store::Checkpoint& checkpoint, const std::string& embedding) {
  const store::TensorInfo* const tensor = checkpoint.find(embedding);
  return tensor != nullptr && (tensor->format == nullptr || tensor->format->words);
}

}  // namespace

store::PackPlan pack_plan(const store::Checkpoint& checkpoint) {
  const Model model = describe_model(checkpoint);
  store::PackPlan plan{.architecture = model.config.model_type, .experts = {}};
  plan.experts.reserve(model.experts.size());
  for (const ExpertPieces& expert : model.experts)
    plan.experts.push_back({expert.layer, expert.index, expert.all()});
  for (const TensorSpec& spec : model.dense)
    if (is_exact(spec.role)) plan.exact.push_back(spec.name);
  const TensorSpec* const embedding = model.find(Role::kEmbedding);
  if (embedding == nullptr || model.config.tied_head || !is_read_in_rows(checkpoint, embedding->name))
    return plan;
  const std::uint64_t rows = embedding->shape[0], columns = embedding->shape[1];
  const std::uint64_t together = std::max<std::uint64_t>(1, kRangeElements / columns);
  for (std::uint64_t row = 0; row < rows; row += together)
    plan.ranges.push_back({embedding->name, row * columns, std::min(together, rows - row) * columns});
  return plan;
}

}  // namespace sluice::model
