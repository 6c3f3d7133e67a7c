#include "model/pack_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {
namespace {

// Rows of the input embedding that are read together: a read of so many takes about the time of a read of
// one.
constexpr std::uint64_t kRangeElements = 16 * 1024;

void check_words(const store::Checkpoint& checkpoint) {
  for (const store::TensorInfo& tensor : checkpoint.tensors())
    if (tensor.format != nullptr && !tensor.format->words)
      throw Error(ErrorKind::kUnsupported, fmt::format("tensor \"{}\" cannot be packed", tensor.name))
          .in(checkpoint.path())
          .expected("words of BF16, F16 or F32")
          .found(tensor.format->name)
          .fix("run the files as they are");
}

}  // namespace

store::PackPlan pack_plan(const store::Checkpoint& checkpoint) {
  check_words(checkpoint);
  const Model model = describe_model(checkpoint);
  store::PackPlan plan{.architecture = model.config.model_type, .experts = {}};
  plan.experts.reserve(model.experts.size());
  for (const ExpertPieces& expert : model.experts)
    plan.experts.push_back({expert.layer, expert.index, expert.all()});
  // Routers choose the experts, and the gate weighs shared experts: rounding them is not worth it. Biases are
  // no matrices. The other two are also transposed or spread, not only multiplied with.
  for (const TensorSpec& spec : model.dense)
    if (spec.role == Role::kRouter || spec.role == Role::kSharedExpertGate || spec.role == Role::kKvUp ||
        spec.role == Role::kRelativeBias || is_expert_bias(spec.role))
      plan.exact.push_back(spec.name);
  const TensorSpec* const embedding = model.find(Role::kEmbedding);
  if (embedding == nullptr || model.config.tied_head) return plan;
  const std::uint64_t rows = embedding->shape[0], columns = embedding->shape[1];
  const std::uint64_t together = std::max<std::uint64_t>(1, kRangeElements / columns);
  for (std::uint64_t row = 0; row < rows; row += together)
    plan.ranges.push_back({embedding->name, row * columns, std::min(together, rows - row) * columns});
  return plan;
}

}  // namespace sluice::model
