#include "reproduce/slicemoe/slicemoe_trained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files/temporary_directory.h"
#include "base/stop_request.h"
#include "codec/slices/quantiser_variants.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/feed.h"
#include "eval/reference_windows.h"
#include "experts/layer_decider.h"
#include "lab/machine/run_on_machine.h"
#include "lab/replay/routing_recorder.h"
#include "lab/replay/synthetic_routing.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "reproduce/slicemoe/slicemoe_replays.h"
#include "store/pack/pack.h"
#include "store/pack/rounded_copy.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::reproduce {
namespace {

namespace fs = std::filesystem;
using codec::SliceBits;
using engine::Engine;
using engine::EngineOptions;
using eval::WindowScore;
using experts::ConstraintMode;
using experts::InitialSlices;
using experts::PrecisionMode;

constexpr std::size_t kLogitRows = 32;
// At high precision: 4 bits with scales of their own, like the MSBs of MAT84.
constexpr SliceBits kLowBit = {4, 2};
constexpr std::size_t kKappaSteps = 24;
constexpr std::size_t kNormalWeights = 131072;  // SPEC §7.4

Bytes bytes_of_files(const std::string& directory) {
  Bytes bytes = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(directory))
    if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

// Calls `measure`, which computes the text and returns its scores. A router whose scores are not numbers
// throws Error(kInvalid).
void measure_or_break(TextScores& scores, const std::function<void()>& measure) {
  try {
    measure();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalid) throw;
    scores.broken = true;
  }
}

// Whether the low bits of a pair are also measured in a store of their own, kLowBit.
bool has_low_bits(SliceBits bits) { return bits == SliceBits{8, 4}; }

struct Opened {
  explicit Opened(std::unique_ptr<store::Checkpoint> opened)
      : checkpoint(std::move(opened)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

std::string store_name(SliceBits bits) { return fmt::format("{}{}.sluice", bits.high, bits.low); }

double sqnr_db(const codec::QuantiserVariant& variant, SliceBits bits) {
  lab::Normal normal(1);
  double signal = 0, noise = 0;
  std::vector<double> weights(32), rounded(32);
  for (std::size_t i = 0; i < kNormalWeights; i += weights.size()) {
    for (double& weight : weights) weight = normal();
    variant.apply(weights, bits, rounded);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      signal += weights[j] * weights[j];
      noise += (weights[j] - rounded[j]) * (weights[j] - rounded[j]);
    }
  }
  return 10 * std::log10(signal / noise);
}

class TrainedMeasurement {
 public:
  explicit TrainedMeasurement(const TrainedSettings& settings)
      : settings_(settings), grid_(settings.grid), work_(settings.work), exact_(open()) {
    const model::ModelConfig& config = exact_.model.config;
    if (!lab::RunOnMachine::models(config))
      throw Error(ErrorKind::kUnsupported, "nothing of SliceMoE can be measured on this model")
          .in(settings.model)
          .expected("a decoder with experts")
          .found(config.model_type);
    const std::unique_ptr<tokenizer::Tokenizer> tokenizer = tokenizer::load_tokenizer_of(*exact_.checkpoint);
    if (tokenizer == nullptr)
      throw Error(ErrorKind::kNotFound, "scoring a text needs a tokenizer, and this model has none")
          .in(settings.model);
    all_tokens_ = tokenizer->encode(settings.text, tokenizer::AddSpecial::kNo);
    tokens_ = std::span(all_tokens_).first(std::min(all_tokens_.size(), grid_.count * grid_.windows.window));
    eval::check_windows(grid_.windows, tokens_.size(), "give a longer text");
    found_.windows = grid_.windows.count(tokens_.size());
    found_.model = fs::path(settings.model + "/").lexically_normal().parent_path().filename().string();
    const lab::SlicedModel sizes(settings.model, config);
    found_.parameters =
        sizes.rest_weights() + sizes.expert_weights() * static_cast<double>(exact_.model.experts.size());
    found_.tokens = tokens_.size();
    found_.scored = grid_.windows.scored(tokens_.size());
    found_.window = grid_.windows.window;
    found_.prompt = grid_.windows.prompt;
    found_.cache_share = grid_.cache_share;
    count_stages();
  }

  TrainedResults run() {
    quantisers();
    reference();
    routing();
    for (const SliceBits bits : grid_.curves) slices(bits);
    return std::move(found_);
  }

 private:
  std::unique_ptr<store::Checkpoint> open() const { return store::open_directory(settings_.model); }

  void stage(const std::string& text) {
    check_interrupted();
    ++stage_;
    if (settings_.on_stage)
      settings_.on_stage(fmt::format("{} {} of {}: {}", found_.model, stage_, stages_, text));
  }
  void check_interrupted() const { stop_if(settings_.interrupted); }
  eval::ReferenceWindows::OnProgress go_on() const {
    return [this](std::size_t) { return !settings_.interrupted || !settings_.interrupted(); };
  }

  void count_stages() {
    stages_ = 2 + grid_.quantised.size() * codec::quantiser_variants().size();
    for (const SliceBits bits : grid_.curves) {
      const bool has_low = has_low_bits(bits);
      stages_ += (has_low ? 2 : 0) * grid_.lambdas.size();
      stages_ += (has_low ? 5 : 4) * (grid_.limits.size() + 1);
      stages_ += 2 * grid_.thetas.size() + grid_.kappas.size();
    }
  }

  EngineOptions options(std::size_t positions) const {
    EngineOptions options = settings_.options;
    options.positions = positions;
    options.prefetch = "none";                           // its reads depend on timing
    options.chunk = std::max(options.chunk, positions);  // makes a prompt one step
    return options;
  }
  EngineOptions exact_options(std::size_t positions) const {
    EngineOptions exact = options(positions);
    exact.cache = "lru";  // lru needs no measured costs
    return exact;
  }

  void quantisers() {
    if (grid_.quantised.empty()) return;
    const std::span tokens =
        std::span(all_tokens_).first(std::min(all_tokens_.size(), grid_.quantiser_tokens));
    const eval::SteppedWindows windows{.window = std::min(grid_.quantiser_window, tokens.size() / 2),
                                       .prompt = 1};
    const EngineOptions options = exact_options(windows.window);
    std::unique_ptr<eval::ReferenceWindows> reference;
    {
      Engine engine(*exact_.checkpoint, exact_.model,
                    engine::resolve(options, *exact_.checkpoint, exact_.model), kLogitRows);
      reference = std::make_unique<eval::ReferenceWindows>(engine, tokens, windows, go_on());
    }
    found_.quantiser_tokens = windows.scored(tokens.size());
    found_.quantiser_perplexity = own_perplexity(*reference);
    const store::PackPlan plan = model::pack_plan(*exact_.checkpoint);
    store::RoundedCopyOptions copy;
    copy.threads = settings_.options.threads;
    copy.interrupted = settings_.interrupted;
    for (const SliceBits bits : grid_.quantised) {
      for (const codec::QuantiserVariant& variant : codec::quantiser_variants()) {
        stage(fmt::format("{}, {}", mat_name(bits), variant.name));
        const TemporaryDirectory rounded(work_.path(), "rounded");
        store::write_rounded_copy(settings_.model, rounded.file("model"), plan, variant, bits, copy);
        note_work();
        found_.quantisers.push_back(
            quantiser_cell(rounded.file("model"), variant, bits, *reference, options));
      }
    }
  }

  // Measures a quantiser on the model in `path`.
  QuantiserCell quantiser_cell(const std::string& path, const codec::QuantiserVariant& variant,
                               SliceBits bits, const eval::ReferenceWindows& reference,
                               const EngineOptions& options) const {
    QuantiserCell cell;
    cell.quantiser = variant.name;
    cell.bits = bits;
    cell.sqnr_db = sqnr_db(variant, bits);
    const Opened rounded(store::open_directory(path));
    Engine engine(*rounded.checkpoint, rounded.model,
                  engine::resolve(options, *rounded.checkpoint, rounded.model), kLogitRows);
    measure_or_break(
        cell, [&] { set_scores(cell, reference.compare(engine, false, go_on()), reference.scores()); });
    return cell;
  }

  void reference() {
    stage("exact");
    Engine engine(*exact_.checkpoint, exact_.model,
                  engine::resolve(exact_options(grid_.windows.window), *exact_.checkpoint, exact_.model),
                  kLogitRows);
    reference_ = std::make_unique<eval::ReferenceWindows>(engine, tokens_, grid_.windows, go_on());
    found_.perplexity = own_perplexity(*reference_);
  }
  double own_perplexity(const eval::ReferenceWindows& reference) const {
    const double perplexity = eval::perplexity(reference.scores());
    if (std::isfinite(perplexity)) return perplexity;
    throw Error(ErrorKind::kInvalid, "the model's own logits of the text are not numbers")
        .in(settings_.model)
        .fix("the weights are damaged or do not fit config.json: get the model again");
  }

  // Routing of the exact model, step by step.
  void routing() {
    stage("routing");
    lab::RoutingRecorder recorder(exact_.model.config);
    Engine engine(*exact_.checkpoint, exact_.model,
                  engine::resolve(exact_options(grid_.windows.window), *exact_.checkpoint, exact_.model),
                  kLogitRows);
    engine.observe(&recorder);
    eval::score_windows(engine, tokens_, grid_.windows, true, go_on());
    engine.observe(nullptr);
    const lab::RoutedSteps& steps = recorder.steps();
    found_.overlap = hot_overlap(steps, hot_counts(steps.experts), kEarlySteps);
    for (const double theta : {.26, experts::CriticalRule().theta, .5})
      found_.critical.push_back(critical_shares(steps, theta));
    found_.decode_tokens = steps.decode_tokens;
  }

  const Opened& packed(SliceBits bits) {
    for (auto& [of, opened] : stores_)
      if (of == bits) return *opened;
    store::PackOptions pack;
    pack.slices = bits;
    pack.threads = settings_.options.threads;
    pack.interrupted = settings_.interrupted;
    const std::string path = work_.file(store_name(bits));
    store::pack(settings_.model, path, model::pack_plan(*exact_.checkpoint), pack);
    note_work();
    return *stores_.emplace_back(bits, std::make_unique<Opened>(store::open_checkpoint(path))).second;
  }
  void note_work() { found_.work_bytes = std::max(found_.work_bytes, bytes_of_files(work_.path())); }

  // Options that all runs of a pair share: routers that look at memory, limits, a small cache.
  EngineOptions sliced_options(PrecisionMode precision, Bytes cache) const {
    EngineOptions sliced = options(grid_.windows.window);
    sliced.precision = precision;
    sliced.cache_bytes = cache;
    if (precision == PrecisionMode::kDbsc) sliced.slices.initial = InitialSlices::kWarmup;
    return sliced;
  }
  static EngineOptions limited(EngineOptions options, double limit) {
    options.router = "cache-prior";
    options.constraint = ConstraintMode::kHard;
    options.limits.limit = limit;
    return options;
  }

  // `normal`: bytes of an expert of the pair at high precision, divided by those of this store's experts.
  TrainedPoint point(const Opened& store, const EngineOptions& options, double setting, double normal = 1) {
    Engine engine(*store.checkpoint, store.model, engine::resolve(options, *store.checkpoint, store.model),
                  kLogitRows);
    lab::RunOnMachine machine(engine, lab::slicemoe_machine());
    engine.observe(&machine);
    TrainedPoint point;
    point.setting = setting;
    measure_or_break(
        point, [&] { set_scores(point, reference_->compare(engine, true, go_on()), reference_->scores()); });
    engine.observe(nullptr);
    if (point.broken) return point;
    const engine::Statistics& statistics = engine.report().statistics;
    const experts::MissAccount& slices = statistics.decode.slices;
    const lab::RunPhase decode = machine.decode();
    point.hbn = engine.report().constraint()->account().rate() / normal;
    point.msb_missed = slices.msb_rate();
    point.lsb_missed = slices.lsb_rate();
    point.low_share = statistics.low_share / static_cast<double>(statistics.low_tokens);
    point.own = engine.report().decider.decode_changes().agreement();
    set_costs(point, decode);
    return point;
  }

  static void set_costs(TrainedPoint& point, const lab::RunPhase& decode) {
    point.bytes = decode.per_token(decode.traffic.flash);
    point.joules = decode.per_token(decode.energy.total());
    point.seconds = decode.per_token(decode.seconds());
  }

  static Bytes expert_bytes(const Opened& store, EngineOptions options) {
    options.cache_bytes.reset();
    return Engine(*store.checkpoint, store.model, engine::resolve(options, *store.checkpoint, store.model))
        .report()
        .expert_memory_bytes();
  }

  void slices(SliceBits bits) {
    const Opened& store = packed(bits);
    const Bytes expert = expert_bytes(store, sliced_options(PrecisionMode::kHigh, 0));
    TrainedSlices& found = found_.slices.emplace_back();
    found.bits = bits;
    found.cache_bytes =
        static_cast<Bytes>(grid_.cache_share * static_cast<double>(expert * exact_.model.experts.size()));
    // Uniform low bits: a store whose codes have as many bits as this one's MSBs, in a cache of the same
    // bytes.
    const Opened* low = has_low_bits(bits) ? &packed(kLowBit) : nullptr;
    const double normal =
        low == nullptr ? 1
                       : static_cast<double>(expert) /
                             static_cast<double>(expert_bytes(*low, sliced_options(PrecisionMode::kHigh, 0)));
    by_lambda(found, store, low, normal);
    by_limit(found, store, low, normal);
    thetas(found, store);
    kappas(found, store);
  }

  void by_lambda(TrainedSlices& found, const Opened& store, const Opened* low, double normal) {
    found.high_bit.name = fmt::format("{} bits", found.bits.high);
    found.low_bit.name = fmt::format("{} bits", found.bits.low);
    if (low == nullptr) return;  // there is nothing to compare with
    for (const Opened* one : {&store, low}) {
      for (const double lambda : grid_.lambdas) {
        stage(fmt::format("{}, cache-prior, {} bits, λ = {}", mat_name(found.bits),
                          one == low ? found.bits.low : found.bits.high, lambda));
        EngineOptions options = sliced_options(PrecisionMode::kHigh, found.cache_bytes);
        options.router = "cache-prior";
        options.constraint = ConstraintMode::kBoost;
        options.cache_aware.lambda = lambda;
        TrainedCurve& curve = one == low ? found.low_bit : found.high_bit;
        curve.points.push_back(point(*one, options, lambda, one == low ? normal : 1));
      }
    }
  }

  void by_limit(TrainedSlices& found, const Opened& store, const Opened* low, double normal) {
    struct System {
      const char* name;
      const Opened* store;
      PrecisionMode precision;
      InitialSlices initial;
    };
    const System systems[] = {{"high", &store, PrecisionMode::kHigh, {}},
                              {"low", low, PrecisionMode::kHigh, {}},
                              {"AMAT-only", &store, PrecisionMode::kLow, {}},
                              {"DBSC+AMAT", &store, PrecisionMode::kDbsc, InitialSlices::kLastLayer},
                              {"DBSC+AMAT+PCW", &store, PrecisionMode::kDbsc, InitialSlices::kWarmup}};
    for (const System& system : systems) {
      if (system.store == nullptr) continue;
      TrainedCurve& curve = found.limits.emplace_back(TrainedCurve{system.name, {}});
      const double scale = system.store == low ? normal : 1;
      for (std::size_t i = 0; i <= grid_.limits.size(); ++i) {
        const bool free = i == grid_.limits.size();
        const double limit = free ? 1 : grid_.limits[i];
        stage(fmt::format("{}, {}, {}", mat_name(found.bits), system.name,
                          free ? std::string("no limit") : fmt::format("limit {:.3g} %", 100 * limit)));
        EngineOptions options = sliced_options(system.precision, found.cache_bytes);
        if (system.precision == PrecisionMode::kDbsc) options.slices.initial = system.initial;
        curve.points.push_back(point(
            *system.store, free ? options : limited(options, std::min(1.0, limit * scale)), limit, scale));
      }
    }
  }

  void thetas(TrainedSlices& found, const Opened& store) {
    for (TrainedCurve* curve : {&found.theta_free, &found.theta_limited}) {
      const bool free = curve == &found.theta_free;
      curve->name = free ? "no limit, LSBs always read" : fmt::format("limit {:.3g} %", 100 * kMissRate);
      for (const double theta : grid_.thetas) {
        stage(fmt::format("{}, θ = {}, {}", mat_name(found.bits), theta, curve->name));
        EngineOptions options = sliced_options(PrecisionMode::kDbsc, found.cache_bytes);
        options.critical.theta = theta;
        if (free) options.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
        curve->points.push_back(point(store, free ? options : limited(options, kMissRate), theta));
      }
    }
  }

  // The bytes that the first steps behind each prompt read.
  void kappas(TrainedSlices& found, const Opened& store) {
    found.kappa.name = fmt::format("the first {} steps, no limit, LSBs always read", kKappaSteps);
    for (const double kappa : grid_.kappas) {
      stage(fmt::format("{}, κ = {}", mat_name(found.bits), kappa));
      EngineOptions options = sliced_options(PrecisionMode::kDbsc, found.cache_bytes);
      options.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
      options.slices.warmup.kappa = kappa;
      Engine engine(*store.checkpoint, store.model, engine::resolve(options, *store.checkpoint, store.model),
                    kLogitRows);
      lab::RunOnMachine machine(engine, lab::slicemoe_machine());
      engine.observe(&machine);
      const std::unique_ptr<engine::Sequence> sequence = engine.new_sequence();
      const std::size_t steps = std::min(kKappaSteps, grid_.windows.window - grid_.windows.prompt);
      TrainedPoint& point = found.kappa.points.emplace_back();
      point.setting = kappa;
      measure_or_break(point, [&] {
        for (std::size_t w = 0; w < found_.windows; ++w) {
          check_interrupted();
          const std::span rest = tokens_.subspan(w * grid_.windows.window);
          sequence->clear();
          eval::feed(engine, *sequence, rest.first(std::min(rest.size(), grid_.windows.prompt + steps)),
                     grid_.windows.prompt,
                     {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
        }
      });
      engine.observe(nullptr);
      if (point.broken) continue;
      const experts::MissAccount& slices = engine.report().statistics.decode.slices;
      const lab::RunPhase decode = machine.decode();
      point.hbn = slices.rate();
      point.msb_missed = slices.msb_rate();
      point.lsb_missed = slices.lsb_rate();
      set_costs(point, decode);
    }
  }

  const TrainedSettings& settings_;
  const TrainedGrid& grid_;
  const TemporaryDirectory work_;
  const Opened exact_;
  std::vector<tokenizer::TokenId> all_tokens_;
  std::span<const tokenizer::TokenId> tokens_;
  std::unique_ptr<eval::ReferenceWindows> reference_;
  std::vector<std::pair<SliceBits, std::unique_ptr<Opened>>> stores_;
  TrainedResults found_;
  std::size_t stage_ = 0, stages_ = 0;
};

}  // namespace

TrainedGrid trained_grid(bool quick) {
  TrainedGrid grid;
  const std::vector<SliceBits> all(codec::kStoredSliceBits.begin(), codec::kStoredSliceBits.end());
  grid.quantised = all;
  if (quick) {
    grid.quantiser_tokens = 1024;
    grid.quantiser_window = 256;
    grid.windows = {.window = 224, .prompt = 128};
    grid.count = 4;
    grid.curves = {{8, 4}};
    grid.limits = {.02, .05, .2};
    grid.lambdas = {0, .2, .5};
    grid.thetas = {.25, .35, .5};
    grid.kappas = {.5, .75};
    return grid;
  }
  grid.curves = {{8, 4}, {4, 2}};
  grid.limits = {.01, .02, .05, .1, .2, .3};
  grid.lambdas = {0, .1, .2, .3, .5, .8};
  grid.thetas = {.25, .3, .35, .4, .5};
  grid.kappas = {.25, .5, .75};
  return grid;
}

void set_scores(TextScores& scores, std::vector<WindowScore> windows, std::span<const WindowScore> exact) {
  const double perplexity = eval::perplexity(windows);
  scores.broken = !std::isfinite(perplexity);
  if (scores.broken) return;
  scores.perplexity = perplexity;
  scores.loss = eval::difference(windows, exact);
  scores.agreement = eval::top_agreement(windows);
  scores.divergence = eval::mean_divergence(windows);
  scores.windows = std::move(windows);
}

SweepVerdict verdict_of(const std::vector<TrainedPoint>& points, double standard) {
  constexpr double kMoreBytes = 1.02;
  SweepVerdict verdict{.standard = standard, .better = {}};
  const auto own = std::ranges::find(points, standard, &TrainedPoint::setting);
  if (own == points.end() || own->broken) return verdict;
  for (const TrainedPoint& point : points) {
    if (&point == &*own || point.broken) continue;
    const eval::LossDifference against = eval::difference(point.windows, own->windows);
    if (against.loss < -kErrors * against.error && point.bytes <= kMoreBytes * own->bytes)
      verdict.better.push_back(point.setting);
  }
  return verdict;
}

std::optional<EqualAccuracy> at_equal_accuracy(const TrainedCurve& high, const TrainedPoint& slices) {
  std::vector<SystemFigures> sweep;
  for (const TrainedPoint& point : high.points) {
    if (point.broken) continue;
    SystemFigures& figures = sweep.emplace_back();
    figures.mass_lost = point.loss.loss;  // the loss that both must have in common
    figures.joules = point.joules;
    figures.seconds = point.seconds;
  }
  if (sweep.empty() || slices.broken) return std::nullopt;
  const EqualLoss equal = at_equal_loss(std::move(sweep), slices.loss.loss);
  return EqualAccuracy{equal.joules / slices.joules, equal.seconds / slices.seconds, equal.inside};
}

TrainedResults measure_trained(const TrainedSettings& settings) { return TrainedMeasurement(settings).run(); }

namespace {

Json point_json(const TrainedPoint& point) {
  Json json = {{"setting", point.setting}, {"broken", point.broken}};
  if (point.broken) return json;
  json.update({{"hbn_miss_rate", point.hbn},
               {"msb_miss_rate", point.msb_missed},
               {"lsb_miss_rate", point.lsb_missed},
               {"bytes_per_token", point.bytes},
               {"joules_per_token", point.joules},
               {"seconds_per_token", point.seconds}});
  if (point.windows.empty()) return json;  // κ: no windows are scored
  json.update({{"perplexity", point.perplexity},
               {"loss", point.loss.loss},
               {"loss_error", point.loss.error},
               {"top_agreement", point.agreement},
               {"divergence", point.divergence},
               {"low_share", point.low_share},
               {"own_experts", point.own}});
  return json;
}
Json curve_json(const TrainedCurve& curve) {
  Json points = Json::array();
  for (const TrainedPoint& point : curve.points) points.push_back(point_json(point));
  return {{"name", curve.name}, {"points", points}};
}

}  // namespace

Json to_json(const TrainedResults& results) {
  Json json = {{"model", results.model},
               {"parameters", results.parameters},
               {"tokens", results.tokens},
               {"windows", results.windows},
               {"window", results.window},
               {"prompt", results.prompt},
               {"scored", results.scored},
               {"cache", results.cache_share},
               {"perplexity", results.perplexity},
               {"quantiser_tokens", results.quantiser_tokens},
               {"quantiser_perplexity", results.quantiser_perplexity},
               {"decode_tokens", results.decode_tokens},
               {"work_bytes", results.work_bytes},
               {"quantisers", Json::array()},
               {"slices", Json::array()}};
  for (const QuantiserCell& cell : results.quantisers) {
    Json& one = json["quantisers"].emplace_back(Json{{"quantiser", cell.quantiser},
                                                     {"slices", codec::slice_bits_text(cell.bits)},
                                                     {"broken", cell.broken},
                                                     {"sqnr_db", cell.sqnr_db}});
    if (cell.broken) continue;
    one["perplexity"] = cell.perplexity;
    one["loss"] = cell.loss.loss;
    one["loss_error"] = cell.loss.error;
    one["top_agreement"] = cell.agreement;
  }
  for (const TrainedSlices& one : results.slices) {
    Json slices = {{"slices", codec::slice_bits_text(one.bits)},
                   {"cache", one.cache_bytes},
                   {"by_lambda", Json::array()},
                   {"by_limit", Json::array()},
                   {"theta", {curve_json(one.theta_free), curve_json(one.theta_limited)}},
                   {"kappa", curve_json(one.kappa)}};
    for (const TrainedCurve* curve : {&one.high_bit, &one.low_bit})
      if (!curve->points.empty()) slices["by_lambda"].push_back(curve_json(*curve));
    for (const TrainedCurve& curve : one.limits) slices["by_limit"].push_back(curve_json(curve));
    json["slices"].push_back(slices);
  }
  for (const HotOverlap& one : results.overlap)
    json["hot"].push_back(
        {{"hottest", one.hottest}, {"prompt", one.prompt}, {"best", one.best}, {"chance", one.chance}});
  for (const CriticalShares& one : results.critical)
    json["critical"].push_back({{"theta", one.theta}, {"shares", one.shares}});
  return json;
}

}  // namespace sluice::reproduce
