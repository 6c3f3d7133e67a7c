#include "reproduce/paper_replay.h"

#include <algorithm>

#include "base/error.h"
#include "engine/plan/pool_plan.h"
#include "experts/presets.h"
#include "lab/machine/weight_bytes.h"

namespace sluice::reproduce {
namespace {

// Costs of the same model stored whole.
lab::PipelineCosts whole(lab::PipelineCosts costs) {
  costs.fetch.chunks = 0;
  costs.fetch.u *= lab::words_to_plane();  // it was the time of the sign+mantissa plane
  costs.fetch.v = costs.fetch.c = 0;
  costs.bytes.sm = costs.bytes.exp = 0;
  return costs;
}

}  // namespace

// Widths, layers and experts: SPEC §6. 2.4e9 weights are active for a token (arXiv 2405.04434).
const PaperModel& deepseek_v2_lite() {
  static const PaperModel model = {.name = "DeepSeek-V2-Lite",
                                   .layers = 26,
                                   .experts = 64,
                                   .top_k = 6,
                                   .tensors = 3,
                                   .weights = 8650752,
                                   .other_weights = 2.4e9 - 26.0 * 6 * 8650752,
                                   .prompt = {0, 26},
                                   .output = {0, 26}};
  return model;
}

// 24 + 24 blocks of width 1024 and 4096, every second one sparse: the published configuration. Other weights:
// for one stack, 24 attentions of 4 matrices (without a decoder's second ones) and 12 dense blocks.
const PaperModel& switch_large_128() {
  static const PaperModel model = {.name = "Switch-large-128",
                                   .layers = 24,
                                   .experts = 128,
                                   .top_k = 1,
                                   .tensors = 2,
                                   .weights = 2.0 * 1024 * 4096,
                                   .other_weights = 24.0 * 4 * 1024 * 1024 + 12.0 * 2 * 1024 * 4096,
                                   .prompt = {0, 12},
                                   .output = {12, 24}};
  return model;
}

engine::Profile paper_profile(const PaperModel& model, const PaperMachine& machine,
                              const engine::Profile& measured) {
  SLUICE_CHECK(measured.model.chunks > 0 && measured.model.tensors > 0 && measured.model.sm > 0);
  engine::Profile profile = measured;
  const double tensor = model.weights / model.tensors;  // also the bytes of its sign+mantissa plane
  const double chunk = tensor / machine.chunks;
  const double measured_tensor =
      static_cast<double>(measured.model.sm) / static_cast<double>(measured.model.tensors);
  const auto scaled = [](const engine::Measured& one, double factor) {
    return engine::Measured{one.median * factor, one.spread * factor};
  };
  profile.model.architecture = model.name;
  profile.model.layers = model.layers;
  profile.model.experts = model.experts;
  profile.model.top_k = model.top_k;
  profile.model.tensors = model.tensors;
  profile.model.chunks = machine.chunks;
  profile.model.full = static_cast<Bytes>(lab::word_bytes(model.weights));
  profile.model.sm = static_cast<Bytes>(model.weights);
  profile.model.exp = static_cast<Bytes>(machine.rho * model.weights);
  profile.machine.threads = machine.workers;
  profile.u = {tensor / machine.disk_bytes_per_s, 0};
  profile.v = {machine.rho * chunk / machine.disk_bytes_per_s, 0};
  profile.c = scaled(measured.c, chunk * measured.model.chunks / measured_tensor);
  profile.merge = scaled(measured.merge, tensor / measured_tensor);
  const double expert = model.weights / static_cast<double>(measured.model.sm);
  profile.p = scaled(measured.p, expert);
  for (auto& [tokens, time] : profile.p_of_tokens) time = scaled(time, expert);
  profile.rest = scaled(profile.p, model.other_weights / model.weights);
  profile.ranks.clear();
  return profile;
}

std::vector<Conversation> conversations(std::size_t first, std::size_t last, std::size_t count) {
  SLUICE_CHECK(last - first >= 2 && count > 0);
  const std::size_t tokens = last - first, prompt = std::max<std::size_t>(1, tokens / 3);
  std::vector<Conversation> list(count);
  for (std::size_t c = 0; c < count; ++c)
    for (std::size_t i = 0; i < tokens; ++i)
      (i < prompt ? list[c].prompt : list[c].output).push_back(first + (i + c * tokens / count) % tokens);
  return list;
}

PaperReplay::PaperReplay(const PaperModel& model, const TokenRouting& routing, engine::Profile measured)
    : model_(model), routing_(routing), measured_(std::move(measured)) {
  SLUICE_CHECK(routing.layers() == model.layers && routing.experts() == model.experts &&
                   routing.top_k() == model.top_k,
               model.name);
}

void PaperReplay::append(const std::vector<Conversation>& batch, std::size_t output,
                         lab::Requests& requests) const {
  std::size_t longest = 0;
  for (const Conversation& one : batch) {
    if (!one.prompt.empty())
      routing_.append_step(one.prompt, model_.prompt, trace::TracePhase::kPrefill, requests);
    longest = std::max(longest, std::min(output, one.output.size()));
  }
  std::vector<std::size_t> tokens;
  for (std::size_t i = 0; i < longest; ++i) {
    tokens.clear();
    for (const Conversation& one : batch)
      if (i < one.output.size()) tokens.push_back(one.output[i]);
    routing_.append_step(tokens, model_.output, trace::TracePhase::kDecode, requests);
  }
}

ReplayFigures PaperReplay::run(const ReplayRequest& request, const std::function<bool()>& stop) const {
  SLUICE_CHECK(!request.batch.empty() && request.output > 0);
  const engine::Profile profile = paper_profile(model_, request.machine, measured_);
  const experts::Preset& preset = experts::find_preset(request.preset);
  const lab::PipelineCosts costs =
      preset.whole_experts ? whole(lab::pipeline_costs(profile)) : lab::pipeline_costs(profile);
  lab::PipelineSettings settings;
  settings.preset = &preset;
  settings.memory = static_cast<Bytes>(request.memory);
  if (preset.sharing != experts::PoolSharing::kNone)
    settings.pools = engine::plan_pools(profile, {.shares = engine::shares_of(preset),
                                                  .memory = settings.memory,
                                                  .sequences = request.batch.size(),
                                                  .ranks = {}})
                         .chosen.slots;
  const auto replayed = [&](const lab::Requests& requests) {
    return lab::run_pipeline(requests, model_.layers, model_.experts, costs, settings, stop);
  };
  lab::Requests requests;
  append(request.before, SIZE_MAX, requests);
  const lab::PipelineResult before = replayed(requests);
  append(request.batch, request.output, requests);
  const lab::PipelineResult all = replayed(requests);
  // Equal beginnings take equal times, so the rest belongs to the batch.
  const double prefill = all.prefill.time - before.prefill.time,
               decode = all.decode.time - before.decode.time;
  const double disk = all.prefill.disk + all.decode.disk - before.prefill.disk - before.decode.disk;
  const auto steps = static_cast<double>(all.decode.steps - before.decode.steps);
  ReplayFigures figures;
  figures.ttft_s = prefill / static_cast<double>(request.batch.size());
  figures.tpot_s = steps > 0 ? decode / steps : 0;
  figures.tok_s = decode > 0 ? static_cast<double>(all.decode.tokens - before.decode.tokens) / decode : 0;
  figures.e2e_s = prefill + decode;
  figures.stall_share = prefill + decode > 0 ? disk / (prefill + decode) : 0;
  return figures;
}

}  // namespace sluice::reproduce
