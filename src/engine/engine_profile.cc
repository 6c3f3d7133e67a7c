// The part of an engine that measures the costs of its machine, or takes measured ones.
#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine_impl.h"
#include "engine/forward/router_scores.h"
#include "engine/forward/unit/measure_device.h"

namespace sluice::engine {
namespace {

// At the start of a run, where nobody has asked for exact figures.
constexpr std::size_t kStartRepeats = 9, kDeviceStartRepeats = 5;

bool is_of(const Profile& profile, const EngineDevice& device, const DeviceMeasures& what) {
  return profile.device && profile.device->device == device.name() && profile.device->view == what.view &&
         profile.device->computes_experts() == what.experts;
}

// A profile that the user names must say what the device costs: otherwise decisions would depend on what this
// start measures.
void check_device(const Profile& profile, const EngineDevice& device, const DeviceMeasures& what) {
  if (is_of(profile, device, what)) return;
  const bool same_device = profile.device && profile.device->device == device.name();
  if (same_device && profile.device->view == what.view)
    throw Error(ErrorKind::kInvalid, "the profile was measured where the device computed no expert")
        .in(mark(Setting::kProfile))
        .expected("times of experts on the device")
        .found("none")
        .fix("measure again: sluice profile");
  if (same_device)
    throw Error(ErrorKind::kInvalid, "the profile was measured with experts that cross the link otherwise")
        .in(mark(Setting::kProfile))
        .expected("experts as " + std::string(what.view))
        .found(profile.device->view.empty() ? "none said" : profile.device->view)
        .fix("measure again with " + Setting::kKeep + ", " + Setting::kDeviceKeep + " and " +
             Setting::kPrecision + " as this run has them");
  throw Error(ErrorKind::kInvalid, profile.device ? "the profile was measured with another device"
                                                  : "the profile has no costs of a device")
      .in(mark(Setting::kProfile))
      .expected(device.name())
      .found(profile.device ? profile.device->device : "none")
      .fix("measure again: sluice profile MODEL " + flag(Setting::kDevice) + " " +
           device::to_text(device.spec()) +
           (device.has_dense() ? " " + flag(Setting::kDenseOn) + " device " : " ") + flag(Setting::kOutput) +
           " FILE.json");
}

}  // namespace

const Profile* Engine::Impl::given_profile() const {
  if (experts_->facts().sliced || !plan_.profile || model_.experts.empty()) return nullptr;
  const bool fit = fits(*plan_.profile, profiled_model(checkpoint_, model_, *experts_), machine());
  return fit ? &*plan_.profile : nullptr;
}

void Engine::Impl::make_profile() {
  if (experts_->facts().sliced && !plan_.device) return;  // on the host alone no policy uses theirs
  const bool needed =
      policies_->cache->pooled || policies_->scheduler->by_costs || plan_.profile || plan_.device;
  if (model_.experts.empty() || !needed) return;
  const ProfiledModel model = profiled_model(checkpoint_, model_, *experts_);
  if (plan_.profile && !plan_.profile_if_it_fits) {
    check_profile(*plan_.profile, model, machine(), mark(Setting::kProfile));
    if (device_) check_device(*plan_.profile, *device_, measured_there());
  }
  if (plan_.profile && fits(*plan_.profile, model, machine())) {
    profile_ = plan_.profile;
  } else {
    // A short measurement: reads a small part of the experts; of a small model more.
    const Bytes part = model_.experts.size() * experts_->facts().largest_resident / 64;
    const MeasureOptions options{.repeats = kStartRepeats,
                                 .seed = plan_.seed,
                                 .sample_bytes = std::clamp(part, 4 * kMiB, 32 * kMiB),
                                 .stop = plan_.stop};
    measure_with([&](const MeasureTools& tools) { profile_ = measure_profile(tools, machine(), options); });
  }
  if (!device_ || is_of(*profile_, *device_, measured_there())) return;
  measure_with([&](const MeasureTools& tools) {
    profile_->device =
        measured_device(tools, {.repeats = kDeviceStartRepeats, .seed = plan_.seed, .stop = plan_.stop});
  });
}

std::string_view Engine::Impl::link_view() const {
  if (experts_->facts().sliced)
    return policies_->precision.mode == experts::PrecisionMode::kLow ? kMsbView : kSlicesView;
  return plan_.device->copies_packed ? kPackedView : kWordsView;
}

DeviceMeasures Engine::Impl::measured_there() const {
  return {.view = link_view(),
          .experts = !plan_.device->experts_lack.all(),
          .lacking = plan_.device->experts_lack};
}

ProfiledMachine Engine::Impl::machine() const {
  return {cpu_info().model, std::string(isa_name(kernels_.isa)),
          std::string(fetch::io_mode_name(plan_.fetch.io)), pool_.threads()};
}

Profile Engine::Impl::measure(const MeasureOptions& options) {
  if (experts_->facts().sliced && !device_)
    throw Error(
        ErrorKind::kUnsupported,
        "costs of experts in slices are measured beside a device: the host alone plans nothing with them")
        .in(checkpoint_.path())
        .expected("a device, a model directory, or a store of family raw or split")
        .found("family sliced, and no device");
  SLUICE_CHECK(!device_ || statistics_.total().steps == 0, "experts are on the device already");
  Profile profile;
  measure_with([&](const MeasureTools& tools) {
    profile = measure_profile(tools, machine(), options);
    if (device_) profile.device = measured_device(tools, options);
  });
  return profile;
}

DeviceProfile Engine::Impl::measured_device(const MeasureTools& tools, const MeasureOptions& options) {
  DeviceProfile profile = measure_device(tools, device_->unit(), device_->name(), measured_there(), options);
  profile.full_duplex = device_->spec().full_duplex();
  return profile;
}

void Engine::Impl::measure_with(const std::function<void(const MeasureTools&)>& measure) {
  // Runs in any case: after a failed read the engine must still have its experts.
  struct Restore {
    Impl& engine;
    Statistics statistics = engine.statistics_;
    RoutingObserver* observer = engine.passes_->observer();
    ~Restore() {
      engine.moe_->decide_by(engine.decider_.get());
      engine.statistics_ = statistics;
      engine.passes_->observe(observer);
    }
  } restore{*this};
  moe_->decide_by(nullptr);
  passes_->observe(nullptr);  // these steps have no routing
  const std::unique_ptr<Sequence> sequence = new_sequence();
  if (model_.config.has_encoder()) encode(*sequence, std::vector<tokenizer::TokenId>{0}, {});
  const auto run = [&](std::size_t tokens, StepKind kind, bool logits) {
    sequence->clear();
    const std::vector<tokenizer::TokenId> ids(tokens, 0);
    const SequenceSpan span = next_span(*sequence, 0, tokens, kind);
    step({ids, {&span, 1}},
         {[logits](std::size_t) { return logits; }, [](std::size_t, std::span<const float>) {}});
  };
  const auto score = [&] {
    const auto sparse = std::ranges::find(model_.config.sparse, true) - model_.config.sparse.begin();
    const tokenizer::TokenId token = 0;
    const SequenceSpan span = next_span(*sequence, 0, 1, StepKind::kDecode);
    const Workspace& w = workspace_->get();
    RouterScores(ops(), kernels_, model_.config, *weights_)
        .score(static_cast<std::size_t>(sparse), w.expert_rows, {{&token, 1}, {&span, 1}}, w);
  };
  measure({.checkpoint = checkpoint_,
           .model = model_,
           .files = *files_,
           .experts = *experts_,
           .pool = pool_,
           .kernels = kernels_,
           .accountant = *accountant_,
           .workspace = *workspace_,
           .decode_step_without_experts = [&] { run(1, StepKind::kDecode, true); },
           .layers_without_experts = [&](std::size_t tokens) { run(tokens, StepKind::kPrompt, false); },
           .score_one_token = score,
           .positions = std::min<std::size_t>(plan_.positions, chunk())});
}

}  // namespace sluice::engine
