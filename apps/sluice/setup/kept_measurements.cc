#include "setup/kept_measurements.h"

#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/plan/gate_residual.h"
#include "engine/plan/smoe_calibration.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "store/format.h"
#include "store/sidecar/sidecar.h"
#include "store/source/store_checkpoint.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {

// As kept_profile().
std::shared_ptr<const engine::GateResidual> kept_residual(const EngineFlags& flags) {
  try {
    const auto tables = store::read_tables(flags.model, engine::kResidualSidecar, engine::kResidualTables);
    if (tables) return std::make_shared<engine::GateResidual>(engine::read_residual(*tables));
  } catch (const Error& error) {
    const bool of_residual =
        !error.where().starts_with(flags.model + "/" + std::string(store::kManifestName));
    if (of_residual && !flags.quiet) print_warning("the store's residual is passed over: {}", error.what());
  }
  return nullptr;
}

std::shared_ptr<const engine::GateResidual> residual_of_file(const std::string& path) {
  InputFile file = InputFile::open(path);
  try {
    return std::make_shared<engine::GateResidual>(
        engine::read_residual(store::TableSidecar::of_file(std::move(file))));
  } catch (Error& error) {
    throw error.fix("name a file that `sluice calibrate MODEL " + Setting::kResidual + "` wrote with " +
                    Setting::kOutput);
  }
}

bool follows_residual(const engine::PolicyPlan& chosen) {
  return chosen.prefetch->needs == experts::PrefetchNeeds::kResidual;
}

void check_residual_acts(const engine::PolicyPlan& chosen) {
  if (follows_residual(chosen) || chosen.prefetch_is_free) return;
  throw Error(ErrorKind::kUsage, "this flag has no effect here")
      .in(Setting::kResidual)
      .expected(Setting::kPrefetch + " dali-residual")
      .found("prefetch " + std::string(chosen.prefetch->name))
      .fix("give what the flag needs, or leave " + Setting::kResidual + " out");
}

// As kept_profile().
std::optional<engine::SmoeCalibration> kept_smoe_calibration(const EngineFlags& flags) {
  try {
    const std::optional<Json> sidecar =
        store::read_sidecar(flags.model, "calibration", engine::kSmoeCalibrationKind);
    if (sidecar)
      return engine::smoe_calibration_from_json(*sidecar, flags.model + "/sidecar/calibration.json");
  } catch (const Error& error) {
    const bool of_calibration =
        !error.where().starts_with(flags.model + "/" + std::string(store::kManifestName));
    if (of_calibration && !flags.quiet)
      print_warning("the store's calibration is passed over: {}", error.what());
  }
  return std::nullopt;
}

}  // namespace

std::optional<engine::Profile> kept_profile(const EngineFlags& flags) {
  try {
    const std::optional<Json> sidecar = store::read_sidecar(flags.model, "profile", "profile");
    if (sidecar) return engine::profile_from_json(*sidecar, flags.model + "/sidecar/profile.json");
  } catch (Error& error) {
    const bool of_profile = !error.where().starts_with(flags.model + "/" + std::string(store::kManifestName));
    // Once it is measured, keep_profile() puts the new one in its place.
    error.fix("there is nothing to do, unless this comes again: then remove it");
    if (of_profile && !flags.quiet)
      print_warning("the store's profile is passed over, and measured again: {}", error.what());
  }
  return std::nullopt;
}

void find_residual(const EngineFlags& flags, engine::EngineOptions& options) {
  if (!flags.residual.empty()) {
    options.residual_name = flags.residual;
    // Whether anything follows a residual is known before its file is read.
    options.residual = std::make_shared<engine::GateResidual>();
    if (!flags.records_ahead) check_residual_acts(engine::choose_policies(options));
    options.residual = residual_of_file(flags.residual);
  } else if (store::looks_like_store(flags.model)) {
    options.residual_name = flags.model + "/sidecar/residual.bin";
    options.residual = kept_residual(flags);
  }
}

void drop_unused_residual(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                          engine::EngineOptions& options) {
  if (!flags.records_ahead && !follows_residual(chosen)) options.residual = nullptr;
}

void find_smoe_losses(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                      engine::EngineOptions& options) {
  const bool measured = chosen.router->rules == experts::RouterRules::kSmoe &&
                        options.smoe.renorm == experts::SmoeRenorm::kModel;
  if (!measured || options.contract || !store::looks_like_store(flags.model)) return;
  const std::optional<engine::SmoeCalibration> calibration = kept_smoe_calibration(flags);
  if (!calibration) return;
  options.routing_losses = calibration->model();
  if (flags.slices.alpha.empty() && chosen.device_preset == nullptr)
    options.smoe.alpha = calibration->largest_alpha(std::log1p(engine::kUsualSmoeLoss));
}

void keep_profile(const EngineFlags& flags, const engine::Engine& engine) {
  const std::optional<engine::Profile>& used = engine.report().profile;
  const std::optional<engine::Profile>& given = engine.report().plan.profile;
  if (!used || !engine.report().checkpoint.packed()) return;
  // In a kept profile the costs of the device alone may be new.
  const bool has_new_device = given && engine.report().plan.profile_if_it_fits &&
                              given->model == used->model && given->machine == used->machine &&
                              given->device != used->device;
  if (given && !has_new_device) return;
  try {
    store::write_sidecar(flags.model, "profile", "profile", engine::to_json(*engine.report().profile));
  } catch (const Error& error) {
    const bool no_place = error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kNotFound ||
                          error.kind() == ErrorKind::kInvalid;  // a directory or a pipe has its name
    if (!no_place) throw;
  }
}

}  // namespace sluice::app
