#include "reproduce/dali/dali_models.h"

#include "lab/machine/weight_bytes.h"

namespace sluice::reproduce {
namespace {

constexpr double kDeepseekWeights = 8650752, kQuantised = 4.5;
constexpr double kLinkBytes = 32e9;  // PCIe 4.0 ×16, SPEC §3.1

// A datasheet machine for experts of other sizes: copies by the nominal link; computing on the host as `run`
// says for 16 bits, on the device `device`; all bytes of weights shrink with the bits. What stands beside the
// experts is that of DeepSeek-V2-Lite, without shared experts.
DaliMachine datasheet(const char* label, double bits, double weights, const experts::ComputeTime& run,
                      double device) {
  DaliMachine found{label, lab::find_hybrid_machine("dali-3090")};
  const double share = bits / 16;
  lab::HybridMachine& machine = found.machine;
  machine.expert_bits = bits;
  machine.expert_bytes = static_cast<Bytes>(lab::bytes_at(weights, bits));
  machine.source = "datasheets";
  machine.costs.run = {.fixed = run.fixed * share, .per_token = run.per_token * share};
  machine.costs.device.run.fixed = device * share;
  machine.costs.device.transfer = lab::bytes_at(weights, bits) / kLinkBytes;
  machine.costs.device.shared = {};
  return found;
}

DaliMachine named(const char* label, const char* name, const char* consumed, bool has_shared) {
  DaliMachine found{label, lab::find_hybrid_machine(name), consumed};
  if (!has_shared) found.machine.costs.device.shared = {};
  return found;
}

}  // namespace

const DaliModel& dali_deepseek() {
  static const DaliModel model = {.name = "DeepSeek-V2-Lite",
                                  .layers = 26,
                                  .experts = 64,
                                  .top_k = 6,
                                  .weights = kDeepseekWeights,
                                  .right_residual = .795,
                                  .right_raw = .726,
                                  .right_source = "averages of D-T5",
                                  .kv_bytes = lab::word_bytes(27.0 * 576),
                                  .dense_weights = 15.7e9 - 26.0 * 64 * kDeepseekWeights};
  return model;
}

const DaliModel& dali_mixtral() {
  static const DaliModel model = {
      .name = "Mixtral-8x7B",
      .layers = 32,
      .experts = 8,
      .top_k = 2,
      .weights = 176160768,
      .swaps = 1,
      .prefetch = 1,
      .ladder_prefetch = 1,
      .right_residual = .55,
      .right_raw = .50,
      .right_source = "raw: mean of D-T2b's top 1; residual: that times the gain of D-T5 for DeepSeek",
      .kv_bytes = lab::word_bytes(32.0 * 2 * 1024),
      .dense_weights = 46.7e9 - 32.0 * 8 * 176160768};
  return model;
}

const DaliModel& dali_qwen() {
  static const DaliModel model = {.name = "Qwen3-30B-A3B",
                                  .layers = 48,
                                  .experts = 128,
                                  .top_k = 8,
                                  .weights = 4718592,
                                  .ladder_prefetch = 8,
                                  .right_residual = .933,
                                  .right_raw = .776,
                                  .right_source = "averages of D-T5",
                                  .kv_bytes = lab::word_bytes(48.0 * 2 * 512),
                                  .dense_weights = 30.5e9 - 48.0 * 128 * 4718592};
  return model;
}

std::vector<DaliMachine> machines_of(const DaliModel& model) {
  if (model.name == dali_deepseek().name)
    return {named("16 bit", "dali-3090", "", true), named("4.5 bit", "dali-3090-4.5", "", true),
            named("fit", "dali-3090-fit", "D-T4", true)};
  if (model.name == dali_mixtral().name) {
    const experts::ComputeTime run = {.fixed = 1500e-6, .per_token = 1800e-6};  // SPEC §3.3
    return {datasheet("16 bit", 16, model.weights, run, 400e-6),
            datasheet("4.5 bit", kQuantised, model.weights, run, 400e-6),
            named("fit, 4 ms a copy", "dali-3090-mixtral-4", "D-T4", false),
            named("fit, 8 ms a copy", "dali-3090-mixtral-8", "D-T4", false)};
  }
  const double smaller = model.weights / kDeepseekWeights;
  const experts::ComputeTime run = {.fixed = 60e-6 * smaller, .per_token = 90e-6 * smaller};
  return {datasheet("16 bit", 16, model.weights, run, 30e-6 * smaller),
          datasheet("4.5 bit", kQuantised, model.weights, run, 30e-6 * smaller)};
}

}  // namespace sluice::reproduce
