#include "flags/slice_flags.h"

#include <charconv>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/unknown_name.h"
#include "engine/plan/calibration.h"
#include "engine/plan/smoe_calibration.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "flags/command_line.h"
#include "flags/number_range.h"
#include "store/sidecar/sidecar.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::app {
namespace {

enum class Bare { kShare, kBelowOne };  // meaning of a number without %; kBelowOne: 1 likely means 1 %

// Parses "0.05" or "5%", from 0 to 1. Empty: `value` stays.
template <class Number>
void read_share(Setting setting, const std::string& text, Number& value, Bare bare = Bare::kShare) {
  if (text.empty()) return;
  const bool percent = text.back() == '%';
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double number = 0;
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (percent) number /= 100;
  const bool is_number = error == std::errc() && next == end;
  if (!is_number || !(number >= 0 && number <= 1))
    throw Error(ErrorKind::kUsage, is_number ? "value out of range" : "not a number")
        .in(setting)
        .expected("a share from 0 to 1, or 0% to 100%")
        .found("\"" + text + "\"")
        .fix("give such a share, or leave the flag out");
  if (bare == Bare::kBelowOne && !percent && number == 1)
    throw Error(ErrorKind::kUsage, "may mean 1 % or all of it")
        .in(setting)
        .expected("1% or 100%")
        .found("\"" + text + "\"")
        .fix("write it with its percent sign");
  value = number;
}

std::string slices_group() { return "Models in slices (sluice pack " + Setting::kSlices + ")"; }

}  // namespace

void add_activations_flag(Command& command, SliceFlags& flags) {
  command
      .add_option(
          Setting::kActivations, &flags.activations,
          "What experts in slices, dense weights of 8 bits and the blocks of GGUF files and MXFP4 are "
          "multiplied with: int8 (codes of 8 bits, faster), fp32; default: int8, for blocks and with " +
              Setting::kMath + " f32 fp32")
      ->group(slices_group());
}

void add_computing_flags(Command& command, SliceFlags& flags) {
  add_activations_flag(command, flags);
  const std::string slices = slices_group();
  command
      .add_option(Setting::kLowView, &flags.low_view,
                  "What an MSB slice alone stands for: amat, amat-center (the middle of what its codes may "
                  "have been; nearer); default: amat")
      ->group(slices);
  command
      .add_option(
          Setting::kMaxLoss, &flags.max_loss,
          "The loss of perplexity that is accepted (1%): chooses precision and theta, without slices the "
          "router smoe and its alpha, and limits how far routing changes, by the store's calibration "
          "(sluice calibrate)")
      ->group(slices);
}

void add_precision_flag(Command& command, SliceFlags& flags, const std::string& help) {
  command.add_option(Setting::kPrecision, &flags.precision, help)->group(slices_group());
}

void add_slice_flags(Command& command, SliceFlags& flags) {
  const std::string slices = slices_group(), limits = "Routing that may lose, and limits on misses";
  add_precision_flag(command, flags,
                     "Experts are computed at: high, low, or dbsc (a token's critical experts high); prompts "
                     "are computed high; default: the preset's");
  command
      .add_option(Setting::kCritical, &flags.critical,
                  "Which experts dbsc takes as critical: single-head (their share of the token's weights), "
                  "rel_top1 (weight against the largest), fixed_top_c; default: single-head")
      ->group(slices);
  command
      .add_option(Setting::kTheta, &flags.theta,
                  "The least share for single-head and rel_top1; default: 0.35")
      ->group(slices);
  command
      .add_option(Setting::kCriticalCount, &flags.critical_count,
                  "Experts a token for fixed_top_c; default: 1")
      ->check(whole_number(Setting::kCriticalCount, 0, 65535))
      ->group(slices);
  command
      .add_option(Setting::kLsbMiss, &flags.lsb_miss,
                  "An LSB slice that is wanted and not in memory: fetch, skip (computed low), "
                  "fetch_if_budget (as far as the limit on misses allows); default: fetch_if_budget")
      ->group(slices);
  command
      .add_option(Setting::kLsbReserve, &flags.lsb_reserve,
                  "Share of the cache that MSB slices leave to LSB slices; default: 0")
      ->group(slices);
  command
      .add_option(
          Setting::kWarmup, &flags.warmup,
          "What of a prompt's experts the answer begins with: pcw (predicted), empty, last-layer (used "
          "last), random; default: pcw")
      ->group(slices);
  command
      .add_option(
          Setting::kKappa, &flags.kappa,
          "With pcw, LSB slices critical for a smaller share of their tokens leave first; default: 0.5")
      ->group(slices);
  command
      .add_option(
          Setting::kRho, &flags.rho,
          "LSB slices that stay in memory after the prompt, at most, for each MSB slice there (0.5: one for "
          "two); default: 0.5, at high precision 1, at low 0")
      ->group(slices);
  command
      .add_option(Setting::kConstraint, &flags.constraint,
                  "Keeps the miss rate below " + Setting::kMissRate +
                      " (changes the text): none, boost, adaptive, hard; "
                      "default: the preset's")
      ->group(limits);
  command
      .add_option(Setting::kMissRate, &flags.miss_rate,
                  "Bytes read for misses, of the bytes of all experts asked for; default: 5%, under " +
                      Setting::kMaxLoss + " 0")
      ->group(limits);
  command
      .add_option(Setting::kLambda, &flags.lambda,
                  "How much cache-prior prefers experts in memory, 0 to 1; default: 0.5, under the "
                  "constraint hard 0.1")
      ->group(limits);
  command
      .add_option(Setting::kEta, &flags.eta,
                  "How fast lambda follows under the constraint adaptive; default: 0.05")
      ->group(limits);
  command
      .add_option(Setting::kCumsumP, &flags.p,
                  "Probability of the experts that cumsum looks at; default: 0.9")
      ->group(limits);
  command
      .add_option(
          Setting::kAlpha, &flags.alpha,
          "How near to the last expert that a token would get (0.25: within a quarter of its score) "
          "smoe replaces experts that are not in memory by ones that are; default: the largest that loses at "
          "most 1 % by the store's calibration, else 0.25")
      ->group(limits);
  command
      .add_option(Setting::kMerge, &flags.merge,
                  "Whether smoe lets the tokens of a step share the experts that must be read: on, off; "
                  "default: on")
      ->group(limits);
  command
      .add_option(
          Setting::kRenorm, &flags.renorm,
          "How smoe weights a token's experts: model (by the model's rule), mass (that they sum up to "
          "what its own would), none (by their scores); default: model")
      ->group(limits);
  command
      .add_option(
          Setting::kResident, &flags.resident,
          "What smoe takes as in memory beside a device: device, or memory (the host's, too; then only "
          "experts on disk are replaced); default: device")
      ->group(limits);
  command
      .add_option(Setting::kTopJ, &flags.top_j, "A token's best experts that are never replaced; default: 0")
      ->check(whole_number(Setting::kTopJ, 0, 65535))
      ->group(limits);
}

namespace {

void set_smoe_rules(const SliceFlags& flags, experts::SmoeRules& rules) {
  if (!flags.alpha.empty()) {
    const char* const end = flags.alpha.data() + flags.alpha.size();
    const auto [next, error] = std::from_chars(flags.alpha.data(), end, rules.alpha);
    if (error != std::errc() || next != end)
      throw Error(ErrorKind::kUsage, "not a number")
          .in(Setting::kAlpha)
          .expected("a number of at least 0, such as 0.25")
          .found("\"" + flags.alpha + "\"")
          .fix("give such a number, or leave " + Setting::kAlpha + " out");
    rules.validate();
  }
  if (!flags.merge.empty() && flags.merge != "on" && flags.merge != "off")
    throw unknown_name(Setting::kMerge, flags.merge, {"on", "off"});
  rules.merge = flags.merge != "off";
  if (!flags.renorm.empty()) rules.renorm = experts::smoe_renorm(flags.renorm);
  if (!flags.resident.empty()) rules.resident = experts::smoe_resident(flags.resident);
}

}  // namespace

void set_slice_options(const SliceFlags& flags, engine::EngineOptions& options) {
  if (!flags.precision.empty()) {
    if (flags.precision == "full")
      throw Error(ErrorKind::kUsage, "precision full is only for models without slices")
          .in(Setting::kPrecision)
          .expected("high, low or dbsc")
          .found("full")
          .fix("leave " + Setting::kPrecision + " out");
    options.precision = experts::precision_mode(flags.precision);
  }
  if (!flags.critical.empty()) options.critical.kind = experts::critical_kind(flags.critical);
  read_share(Setting::kTheta, flags.theta, options.critical.theta);
  if (flags.critical_count) options.critical.count = static_cast<std::uint32_t>(*flags.critical_count);
  if (flags.low_view == "amat-center")
    options.low_view = codec::SliceView::kCenter;
  else if (!flags.low_view.empty() && flags.low_view != "amat")
    throw unknown_name(Setting::kLowView, flags.low_view, {"amat", "amat-center"});
  if (!flags.activations.empty()) options.activations = engine::parse_activations(flags.activations);
  if (!flags.constraint.empty()) options.constraint = experts::constraint_mode(flags.constraint);
  read_share(Setting::kMissRate, flags.miss_rate, options.limits.limit, Bare::kBelowOne);
  read_share(Setting::kLambda, flags.lambda, options.cache_aware.lambda);
  read_share(Setting::kLambda, flags.lambda, options.limits.lambda);
  read_share(Setting::kEta, flags.eta, options.limits.eta);
  read_share(Setting::kCumsumP, flags.p, options.cache_aware.p);
  if (flags.top_j) options.cache_aware.top_j = static_cast<std::uint32_t>(*flags.top_j);
  set_smoe_rules(flags, options.smoe);
  if (!flags.lsb_miss.empty()) options.slices.rules.lsb_miss = experts::lsb_miss_rule(flags.lsb_miss);
  read_share(Setting::kLsbReserve, flags.lsb_reserve, options.slices.rules.lsb_reserve);
  if (!flags.warmup.empty()) options.slices.initial = experts::initial_slices(flags.warmup);
  read_share(Setting::kKappa, flags.kappa, options.slices.warmup.kappa);
  read_share(Setting::kRho, flags.rho, options.rho);
}

void set_max_loss(const SliceFlags& flags, const std::string& path, engine::EngineOptions& options) {
  if (flags.max_loss.empty()) return;
  double most = 0;
  read_share(Setting::kMaxLoss, flags.max_loss, most, Bare::kBelowOne);
  // The user may say that smoe spends what routing may lose, where a store is in slices.
  const bool smoe = !options.router.empty() && options.router->rules == experts::RouterRules::kSmoe;
  const bool spends =
      smoe && store::looks_like_store(path) && store::open_checkpoint(path)->slices().has_value();
  const std::pair<Setting, bool> chosen[] = {{Setting::kPrecision, !flags.precision.empty()},
                                             {Setting::kTheta, !flags.theta.empty()},
                                             {Setting::kCritical, !flags.critical.empty()},
                                             {Setting::kLsbMiss, !flags.lsb_miss.empty()},
                                             {Setting::kRho, !flags.rho.empty()},
                                             {Setting::kConstraint, !flags.constraint.empty()},
                                             {Setting::kLambda, !flags.lambda.empty()},
                                             {Setting::kCumsumP, !flags.p.empty()},
                                             {Setting::kAlpha, !flags.alpha.empty() && !spends},
                                             {Setting::kMerge, !flags.merge.empty()},
                                             {Setting::kRenorm, !flags.renorm.empty()},
                                             {Setting::kRouter, !options.router.empty() && !spends},
                                             {Setting::kPreset, !options.preset.empty()}};
  for (const auto& [setting, given] : chosen)
    if (given)
      throw Error(ErrorKind::kUsage, Setting::kMaxLoss + " chooses precision and routing by what they cost")
          .in(setting)
          .expected("either of them")
          .found("both")
          .fix("leave out " + setting + " or " + Setting::kMaxLoss);
  if (!store::looks_like_store(path))
    throw Error(ErrorKind::kUsage, "what a loss costs is measured for packed stores, which keep it")
        .in(Setting::kMaxLoss)
        .expected("a NAME.sluice store")
        .found(path)
        .fix("leave " + Setting::kMaxLoss + " out: this model loses nothing; or pack it");
  const bool sliced = store::open_checkpoint(path)->slices().has_value();
  const std::string name = path + "/sidecar/calibration.json";
  const std::optional<Json> sidecar =
      store::read_sidecar(path, "calibration", sliced ? "calibration" : engine::kSmoeCalibrationKind);
  if (!sidecar)
    throw Error(ErrorKind::kNotFound, "nobody has measured what this store loses")
        .in(Setting::kMaxLoss)
        .expected(name + ", made for this store")
        .found(std::string(is_there(name) ? "one of another store" : "none"))
        .fix("make it: sluice calibrate " + shown_text(path) + " " +
             (sliced ? flag(Setting::kReference) + " MODEL " + flag(Setting::kFile) + " TEXT"
                     : flag(Setting::kFile) + " TEXT; or leave " + Setting::kMaxLoss +
                           " out: this model loses nothing"));
  if (!sliced) return engine::set_contract(engine::smoe_calibration_from_json(*sidecar, name), most, options);
  engine::set_contract(engine::calibration_from_json(*sidecar, name), most, name, options);
  read_share(Setting::kMissRate, flags.miss_rate, options.limits.limit, Bare::kBelowOne);
}

}  // namespace sluice::app
