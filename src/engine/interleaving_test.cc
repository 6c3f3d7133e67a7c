// The logits of a sequence do not depend on what else is computed: which sequences share its steps, how its
// prompt is cut, which passes are suspended or cancelled on the way, and what the policies do about it, also
// where a device beside the host computes experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/forward/pass.h"
#include "engine/model_identity.h"
#include "engine/plan/gate_residual.h"
#include "engine/run_report.h"
#include "engine/watch/routing_observer.h"
#include "experts/device_plan.h"
#include "experts/device_presets.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"
#include "kernels/attention/attention.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::interleaving_test {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = sluice::testing::kGoldenModels;
constexpr std::size_t kSequences = 8, kPositions = 104, kSuspended = 2;

std::uint64_t any_seed() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

// One request: given tokens, of which the first are its prompt and each later one is decoded.
struct Text {
  std::vector<tokenizer::TokenId> tokens, encoder_tokens;
  std::size_t prompt = 0;
  std::vector<std::uint64_t> alone = {};  // hashes of the logits behind each token
};

std::vector<Text> random_texts(std::mt19937_64& random, const model::ModelConfig& config) {
  std::vector<Text> texts(2 + random() % (kSequences - 1));
  const auto fill = [&](std::vector<tokenizer::TokenId>& tokens, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<tokenizer::TokenId>(random() % config.vocab));
  };
  for (Text& text : texts) {
    text.prompt = (random() % 4 == 0 ? 65 : 1) + random() % 24;  // some need a third block of the cache
    fill(text.tokens, text.prompt + random() % 8);
    if (config.has_encoder()) fill(text.encoder_tokens, 1 + random() % 20);
  }
  return texts;
}

EngineOptions options_for(std::size_t sequences) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.positions = kPositions;
  options.encoder_positions = 32;  // ignored by a decoder-only model
  options.sequences = sequences;
  options.chunk = 64;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

std::uint64_t hash(std::span<const float> logits) { return xxh3(std::as_bytes(logits)); }

void compute_alone(Engine& engine, Text& text) {
  const auto sequence = engine.new_sequence();
  if (!text.encoder_tokens.empty()) engine.encode(*sequence, text.encoder_tokens);
  const LogitSink sink{[](std::size_t) { return true; },
                       [&](std::size_t, std::span<const float> row) { text.alone.push_back(hash(row)); }};
  engine.prefill(*sequence, std::span(text.tokens).first(text.prompt), sink);
  for (std::size_t t = text.prompt; t < text.tokens.size(); ++t)
    engine.decode(*sequence, text.tokens[t], sink);
}

// What all runs together have met, so that no case is tested by name alone.
struct Met {
  std::size_t mixed = 0, suspended = 0, cancelled = 0, shared = 0, evictions = 0, long_texts = 0;
  std::size_t on_device = 0, there = 0;  // experts that a device computed, and of them those that it had
};

// Computes the texts in passes of random spans.
class Interleaved {
 public:
  Interleaved(Engine& engine, std::span<const Text> texts, std::mt19937_64& random, Met& met)
      : engine_(engine), texts_(texts), random_(random), met_(met), done_(texts.size()), busy_(texts.size()) {
    for (const Text& text : texts) {
      sequences_.push_back(engine.new_sequence());
      if (!text.encoder_tokens.empty()) engine.encode(*sequences_.back(), text.encoder_tokens);
    }
  }

  void run() {
    while (!::testing::Test::HasFailure()) {
      const bool may_begin = open_.size() <= kSuspended && !idle().empty();
      if (open_.empty() && !may_begin) break;
      if (may_begin && (open_.empty() || random_() % 3 == 0))
        begin();
      else
        go_on();
    }
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      EXPECT_EQ(sequences_[i]->length(), texts_[i].tokens.size());
      met_.long_texts += sequences_[i]->length() > 2 * kernels::kCacheBlock ? 1 : 0;
    }
  }

 private:
  // A pass, and what its step views.
  struct Open {
    std::vector<tokenizer::TokenId> tokens;
    std::vector<SequenceSpan> spans;
    std::vector<std::size_t> texts;  // by span
    std::optional<Pass> pass;
  };

  std::vector<std::size_t> idle() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (!busy_[i] && done_[i] < texts_[i].tokens.size()) all.push_back(i);
    return all;
  }

  void begin() {
    std::vector<std::size_t> those = idle();
    std::ranges::shuffle(those, random_);
    those.resize(1 + random_() % those.size());
    Open& open = *open_.emplace_back(std::make_unique<Open>());
    for (const std::size_t i : those) {
      const Text& text = texts_[i];
      const bool prompt = done_[i] < text.prompt;
      const std::size_t room = engine_.chunk() - open.tokens.size();
      if (room == 0) break;
      const std::size_t most = std::min(room, prompt ? text.prompt - done_[i] : 1);
      const std::size_t count = std::min<std::size_t>(most, 1 + random_() % 8);
      open.spans.push_back({sequences_[i].get(), open.tokens.size(), count,
                            prompt ? StepKind::kPrompt : StepKind::kDecode, !prompt || done_[i] == 0});
      open.tokens.insert(open.tokens.end(), text.tokens.begin() + static_cast<std::ptrdiff_t>(done_[i]),
                         text.tokens.begin() + static_cast<std::ptrdiff_t>(done_[i] + count));
      open.texts.push_back(i);
      busy_[i] = true;
    }
    const auto of_prompt = std::ranges::count(open.spans, StepKind::kPrompt, &SequenceSpan::kind);
    met_.mixed += of_prompt != 0 && of_prompt != std::ssize(open.spans) ? 1 : 0;
    met_.shared += open.spans.size() > 1 ? 1 : 0;
    met_.suspended += open_.size() > 1 ? 1 : 0;
    open.pass.emplace(engine_.begin({open.tokens, open.spans}));
  }

  void go_on() {
    const std::size_t at = random_() % open_.size();
    Open& open = *open_[at];
    const std::size_t layers = engine_.model().config.layers;
    switch (random_() % 8) {
      case 0:
        ++met_.cancelled;
        open.pass->cancel();
        return close(at, false);
      case 1:
      case 2:
        open.pass->finish({[](std::size_t) { return true; },
                           [&](std::size_t t, std::span<const float> row) { compare(open, t, row); }});
        EXPECT_TRUE(open.pass->is_over());
        return close(at, true);
      default:
        open.pass->advance(std::min(layers, open.pass->layer() + random_() % 2));
    }
  }

  void compare(const Open& open, std::size_t token, std::span<const float> row) const {
    for (std::size_t s = 0; s < open.spans.size(); ++s) {
      const SequenceSpan& span = open.spans[s];
      if (token < span.first_token || token >= span.first_token + span.tokens) continue;
      const std::size_t i = open.texts[s], position = done_[i] + token - span.first_token;
      EXPECT_EQ(hash(row), texts_[i].alone[position]) << "text " << i << ", token " << position;
    }
  }

  void close(std::size_t at, bool finished) {
    const Open& open = *open_[at];
    for (std::size_t s = 0; s < open.spans.size(); ++s) {
      busy_[open.texts[s]] = false;
      if (finished) done_[open.texts[s]] += open.spans[s].tokens;
    }
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  Engine& engine_;
  std::span<const Text> texts_;
  std::mt19937_64& random_;
  Met& met_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<std::size_t> done_;  // tokens of each text
  std::vector<bool> busy_;         // in an open pass
  std::vector<std::unique_ptr<Open>> open_;
};

class DecisionCounter final : public RoutingObserver {
 public:
  explicit DecisionCounter(Met& met) : met_(met) {}
  void on_decisions(std::uint32_t, const experts::LayerDecision& decision) override {
    met_.evictions += decision.outcome->evicted.size();
    if (decision.device == nullptr) return;
    met_.evictions += decision.device->evicted.size();
    met_.on_device += decision.device->uses.size();
    met_.there += static_cast<std::size_t>(
        std::ranges::count(decision.device->uses, experts::DeviceBytes::kSlot, &experts::DeviceUse::from));
  }

 private:
  Met& met_;
};

std::string name_of(const EngineOptions& options) {
  const auto text_of = [](const auto& named) { return named.empty() ? "" : std::string(named->name); };
  std::string name = "preset " + std::string(options.preset.empty() ? "" : options.preset.name()) +
                     ", cache " + text_of(options.cache) + ", scheduler " + text_of(options.scheduler) +
                     ", prefetch " + text_of(options.prefetch);
  if (options.device.empty()) return name;
  name += ", placement " + text_of(options.placement) + ", device cache " + text_of(options.device_cache) +
          " of " + std::to_string(options.device_slots.value_or(0)) + " slots";
  if (options.dense_on == DenseOn::kDevice) name += ", dense weights there";
  return name;
}

// Under each of the settings, the texts have the logits that they have alone.
void check(const std::string& path, std::span<const EngineOptions> settings, std::uint64_t seed, Met& met) {
  std::mt19937_64 random(seed);
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  std::vector<Text> texts = random_texts(random, model.config);
  {
    EngineOptions options = options_for(1);
    options.precision = settings.front().precision;
    Engine alone(*checkpoint, model, resolve(options, *checkpoint, model));
    for (Text& text : texts) compute_alone(alone, text);
  }
  for (const EngineOptions& options : settings) {
    SCOPED_TRACE(name_of(options));
    Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 1 + random() % 5);
    DecisionCounter counter(met);
    if (!model.config.has_encoder()) engine.observe(&counter);
    Interleaved(engine, texts, random, met).run();
  }
}

EngineOptions with_part_of_experts(Bytes cache_bytes) {
  EngineOptions options = options_for(kSequences);
  options.suspended_passes = kSuspended;
  options.cache_bytes = cache_bytes;
  options.less_cache_will_do = true;
  return options;
}

// What `calibrate` measures, for prefetches that need it: any vectors will do.
std::shared_ptr<const GateResidual> any_residual(const std::string& path) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  auto residual = std::make_shared<GateResidual>();
  fetch::FetchOptions buffered;
  buffered.io = fetch::IoMode::kBuffered;
  residual->identity = model_identity(*checkpoint, model, buffered);
  residual->vectors.layers = model.config.sparse_layers();
  residual->vectors.width = model.config.hidden;
  for (std::size_t i = 0; i < (residual->vectors.layers - 1) * residual->vectors.width; ++i)
    residual->vectors.values.push_back(static_cast<float>(i % 7) / 16 - 0.2f);
  return residual;
}

// Asks for `prefetch`, with what it needs. False: it needs what no engine has.
bool set_prefetch(const experts::PrefetchPolicy& prefetch, std::shared_ptr<const GateResidual> residual,
                  EngineOptions& options) {
  if (prefetch.needs == experts::PrefetchNeeds::kTransitions) return false;
  options.prefetch = prefetch.name;
  if (prefetch.needs == experts::PrefetchNeeds::kNothing) return true;
  options.residual = std::move(residual);
  options.residual_name = "made up";
  return true;
}

// Engines with room for few experts, under every policy of the registry that keeps the routing exact.
std::vector<EngineOptions> every_exact_policy(bool sliced, Bytes cache_bytes,
                                              const std::shared_ptr<const GateResidual>& residual) {
  EngineOptions plain = with_part_of_experts(cache_bytes);
  plain.preset = sliced ? "slicemoe" : "auto";
  plain.router = "exact";
  if (sliced) {
    plain.precision = experts::PrecisionMode::kHigh;
    plain.constraint = experts::ConstraintMode::kNone;
  }
  plain.cache = "lru";
  plain.scheduler = "fifo";
  plain.prefetch = "stream";
  std::vector<EngineOptions> all;
  for (const experts::CachePolicy& cache : experts::cache_policies()) {
    if (cache.oracle || (cache.sliced && !sliced) || (cache.pooled && sliced)) continue;
    all.push_back(plain);
    all.back().cache = cache.name;
  }
  for (const experts::SchedulerPolicy& scheduler : experts::scheduler_policies()) {
    if (scheduler.by_costs && sliced) continue;
    all.push_back(plain);
    all.back().scheduler = scheduler.name;
  }
  for (const experts::PrefetchPolicy& prefetch : experts::prefetch_policies()) {
    EngineOptions options = plain;
    if (set_prefetch(prefetch, residual, options)) all.push_back(std::move(options));
  }
  return all;
}

// One of the table for which `is_good`.
template <class Table, class Good>
const auto& any_of(const Table& table, std::mt19937_64& random, const Good& is_good) {
  for (;;)
    if (const auto& one = table[random() % table.size()]; is_good(one)) return one;
}

bool is_exact(const experts::Preset& preset) { return !preset.sliced() && !preset.router->lossy; }

// A device of a few slots, of which nothing is said yet.
void add_device(std::uint32_t experts, std::mt19937_64& random, EngineOptions& options) {
  options.device = "emulated:link=inf,compute=inf,latency=0us,threads=" + std::to_string(1 + random() % 2);
  options.device_slots = static_cast<std::uint32_t>(1 + random() % std::min<std::uint32_t>(experts, 6));
  options.dense_on = random() % 3 == 0 ? DenseOn::kDevice : DenseOn::kHost;
}

// What another text used, for caches of the device that keep what is popular: anything will do.
void add_popularity(const model::ModelConfig& config, EngineOptions& options) {
  options.popularity_name = "made up";
  options.popularity.resize(config.sparse_layers());
  for (std::size_t layer = 0; layer < options.popularity.size(); ++layer)
    for (std::size_t e = 0; e < config.moe.experts; ++e)
      options.popularity[layer].push_back(static_cast<double>((7 * e + layer) % config.moe.experts));
}

// One placement, cache and prefetch of a device, all drawn.
void add_any_device(const model::ModelConfig& config, std::mt19937_64& random, EngineOptions& options) {
  add_device(config.moe.experts, random, options);
  options.placement =
      any_of(experts::placement_policies(), random, [](const auto& one) { return one.needs_device; }).name;
  const auto& cache = any_of(experts::cache_policies(), random, [](const experts::CachePolicy& one) {
    return !one.oracle && !one.pooled && !one.sliced;
  });
  options.device_cache = cache.name;
  if (cache.by_popularity) add_popularity(config, options);
  options.prefetch = any_of(experts::prefetch_policies(), random, [](const auto& one) {
                       return one.needs == experts::PrefetchNeeds::kNothing;
                     }).name;
}

// Each placement of a device with a drawn cache.
std::vector<EngineOptions> every_placement(bool sliced, const model::ModelConfig& config, Bytes cache_bytes,
                                           std::mt19937_64& random) {
  EngineOptions plain = with_part_of_experts(cache_bytes);
  if (sliced) plain.precision = experts::PrecisionMode::kHigh;
  std::vector<EngineOptions> all;
  for (const experts::PlacementPolicy& placement : experts::placement_policies()) {
    if (!placement.needs_device) continue;
    all.push_back(plain);
    add_any_device(config, random, all.back());
    all.back().placement = placement.name;
  }
  return all;
}

// The exact presets, of the host and of a device, and each placement.
std::vector<EngineOptions> every_exact_preset(const model::ModelConfig& config, Bytes cache_bytes,
                                              const std::shared_ptr<const GateResidual>& residual,
                                              std::mt19937_64& random) {
  const EngineOptions plain = with_part_of_experts(cache_bytes);
  std::vector<EngineOptions> all = every_placement(false, config, cache_bytes, random);
  for (const experts::Preset& preset : experts::presets()) {
    if (!is_exact(preset)) continue;
    all.push_back(plain);
    all.back().preset = preset.name;
  }
  for (const experts::DevicePreset& preset : experts::device_presets()) {
    if (preset.router->lossy) continue;
    all.push_back(plain);
    add_device(config.moe.experts, random, all.back());
    all.back().preset = preset.name;
    if (!set_prefetch(*preset.prefetch, residual, all.back())) all.back().prefetch = "none";
    if (preset.device_cache->by_popularity) add_popularity(config, all.back());
  }
  return all;
}

// Beside the settings of the user, another exact preset, and a device where the model has routed experts.
std::vector<EngineOptions> with_drawn(const std::string& path, const EngineOptions& options,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const model::ModelConfig config = model::describe_model(*store::open_checkpoint(path)).config;
  std::vector<EngineOptions> all(3, options);
  all.push_back(options);
  all.back().preset = any_of(experts::presets(), random, is_exact).name;
  if (config.sparse_layers() == 0) return all;
  all.push_back(options);
  add_any_device(config, random, all.back());
  return all;
}

Bytes part_of_experts(const std::string& path) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  EngineOptions options = options_for(1);
  if (checkpoint->slices()) options.precision = experts::PrecisionMode::kHigh;
  const Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
  return model.experts.size() * engine.report().expert_memory_bytes() / 3;
}

TEST(Interleaving, EveryArchitecture) {
  Met met;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    const std::uint64_t seed = any_seed();
    SCOPED_TRACE(name + ", SLUICE_TEST_SEED=" + std::to_string(seed));
    std::cout << name << ": SLUICE_TEST_SEED=" << seed << '\n';
    EngineOptions options = options_for(kSequences);
    options.suspended_passes = kSuspended;
    options.cache_bytes = part_of_experts(kModels / name);
    options.less_cache_will_do = true;
    check(kModels / name, with_drawn(kModels / name, options, seed), seed, met);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(met.mixed, 0u);
  EXPECT_GT(met.shared, 0u);
  EXPECT_GT(met.suspended, 0u);
  EXPECT_GT(met.cancelled, 0u);
  EXPECT_GT(met.long_texts, 0u);
  EXPECT_GT(met.evictions, 0u);
  EXPECT_GT(met.on_device, 0u);
}

// A model as a family stores it: as it is, or packed in `scratch`.
std::string stored_as(const std::string& family, const testing::ScratchDirectory& scratch) {
  const std::string path = kModels / "qwen2_moe_a";
  if (family == "raw") return path;
  store::PackOptions options;
  if (family == "sliced") options.slices = codec::SliceBits{8, 4};
  const std::string packed = scratch.file(family + ".sluice");
  store::pack(path, packed, model::pack_plan(*store::open_checkpoint(path)), options);
  return packed;
}

TEST(Interleaving, EveryExactPolicy) {
  const testing::ScratchDirectory scratch;
  for (const char* family : {"raw", "split", "sliced"}) {
    const std::uint64_t seed = any_seed();
    SCOPED_TRACE(std::string(family) + ", SLUICE_TEST_SEED=" + std::to_string(seed));
    std::cout << family << ": SLUICE_TEST_SEED=" << seed << '\n';
    const bool sliced = family == std::string("sliced");
    const std::string path = stored_as(family, scratch);
    Met met;
    check(path, every_exact_policy(sliced, part_of_experts(path), any_residual(path)), seed, met);
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(met.evictions, 0u);
  }
}

TEST(Interleaving, EveryExactPresetAndPlacement) {
  const testing::ScratchDirectory scratch;
  for (const char* family : {"raw", "split", "sliced"}) {  // presets are for whole experts, or lose
    const std::uint64_t seed = any_seed();
    SCOPED_TRACE(std::string(family) + ", SLUICE_TEST_SEED=" + std::to_string(seed));
    std::cout << family << ": SLUICE_TEST_SEED=" << seed << '\n';
    const std::string path = stored_as(family, scratch);
    const model::ModelConfig config = model::describe_model(*store::open_checkpoint(path)).config;
    std::mt19937_64 random(seed);
    Met met;
    // What is drawn uses a device more or less; one draw in five uses it too little to show much.
    constexpr int kDraws = 4;
    for (int draw = 0; draw < kDraws && !(met.on_device > 1000 && met.there > 100); ++draw) {
      const Bytes cache = part_of_experts(path);
      const bool sliced = family == std::string("sliced");
      check(path,
            sliced ? every_placement(true, config, cache, random)
                   : every_exact_preset(config, cache, any_residual(path), random),
            seed + draw, met);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(met.evictions, 0u);
    EXPECT_GT(met.suspended, 0u);
    EXPECT_GT(met.on_device, 1000u);
    EXPECT_GT(met.there, 100u);
  }
}

}  // namespace
}  // namespace sluice::engine::interleaving_test
