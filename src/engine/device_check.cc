#include "engine/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/forward/common/gating.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/plan/device_choice.h"
#include "engine/plan/lacking_experts.h"
#include "kernels/gpu/gpu_formats.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::engine {
namespace {

using codec::MatrixFormat;
using kernels::UnitFault;

kernels::UnitWork work_of(const store::Checkpoint& checkpoint, const model::Model& model,
                          const EnginePlan& plan) {
  kernels::UnitWork work{.gating = gating_of(model.config.activation), .math = plan.device->math};
  if (!plan.device->experts_lack.all()) work.experts = expert_formats_there(checkpoint, model);
  if (plan.device->dense_on == DenseOn::kHost) return work;
  work.dense_part = true;
  work.caches = {plan.cache_dtype};
  work.dense = {&codec::kFormatBf16, &codec::kFormatF32};  // routers, too
  if (plan.dense == DenseForm::kPacked) work.dense.push_back(&codec::kFormatPacked);
  for (const MatrixFormat* const format : DenseWeights::formats(checkpoint, model))
    if (kernels::gpu_multiplies(*format) && std::ranges::find(work.dense, format) == work.dense.end())
      work.dense.push_back(format);
  return work;
}

// The plan with what a device computes otherwise left to the host.
EnginePlan stepped_down(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
                        std::vector<UnitFault> faults) {
  plan.device_faults = std::move(faults);
  const auto of_all_experts = [](const UnitFault& fault) {
    return fault.of_experts && fault.format == nullptr;
  };
  const bool none = std::ranges::any_of(plan.device_faults, of_all_experts);
  const auto is_good = [&](const MatrixFormat* format) {
    return !none && format != nullptr && kernels::gpu_multiplies(*format) &&
           std::ranges::none_of(plan.device_faults, [&](const UnitFault& fault) {
             return fault.of_experts && fault.format == format;
           });
  };
  plan.device->experts_lack = experts_lacking(checkpoint, model, is_good);
  if (plan.device->experts_lack.all()) leave_experts_to_host(plan);
  return plan;
}

}  // namespace

kernels::UnitCheck check_device(const device::DeviceSpec& spec, const device::DeviceMaker& devices,
                                const KernelMaker& make_kernels, const kernels::UnitWork& work) {
  constexpr Bytes kRoom = kMiB;  // for words of packed matrices
  const std::unique_ptr<device::Device> device =
      devices.make(spec, {.memory = kernels::kGpuListBytes + kRoom + kernels::kUnitCheckBytes});
  const std::unique_ptr<kernels::UnitKernels> kernels =
      make_kernels ? make_kernels(*device)
                   : kernels::make_gpu_kernels(*device, {.room = kRoom, .math = work.math});
  return kernels::check_unit(*device, *kernels, work);
}

kernels::UnitWork all_gpu_work() {
  kernels::UnitWork work{.dense_part = true, .caches = {DType::kBF16, DType::kF32, DType::kI8}};
  work.experts.assign(kernels::gpu_formats().begin(), kernels::gpu_formats().end());
  work.dense = work.experts;
  return work;
}

SettledPlan settled_plan(const store::Checkpoint& checkpoint, const model::Model& model,
                         const device::DeviceMaker& devices, const KernelMaker& make_kernels,
                         EnginePlan asked) {
  if (!asked.device) return {std::move(asked)};
  const device::DeviceSpec& spec = asked.device->spec;
  device::DeviceFacts facts = devices.facts(spec);
  if (spec.is_played()) return {std::move(asked), std::move(facts)};  // with the functions of the host
  std::vector<UnitFault> faults =
      check_device(spec, devices, make_kernels, work_of(checkpoint, model, asked)).faults;
  if (faults.empty()) return {std::move(asked), std::move(facts)};
  return {stepped_down(checkpoint, model, std::move(asked), std::move(faults)), std::move(facts)};
}

std::string device_warning(const EnginePlan& plan) {
  if (plan.device_faults.empty()) return "";
  std::string operations;
  bool dense = false, experts = false;
  for (const UnitFault& fault : plan.device_faults) {
    operations += fmt::format("{}{} ({})", operations.empty() ? "" : ", ", fault.operation, fault.found);
    dense |= fault.of_dense;
    experts |= fault.of_experts;
  }
  const std::string_view left = !plan.device ? "everything"
                                : dense      ? experts ? "the dense part and experts" : "the dense part"
                                             : "experts";
  return fmt::format(
      "the device does not do what the host does: {}; the host computes {}{}", operations, left,
      plan.device && experts
          ? plan.device->experts_lack.all() ? ", all of them" : " in " + plan.device->experts_lack.formats
          : "");
}

}  // namespace sluice::engine
