// The logits of a sequence do not depend on what else is computed: which sequences share its steps, how its
// prompt is cut, which passes are suspended or cancelled on the way, and what the policies do about it.
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
#include "engine/run_report.h"
#include "engine/watch/routing_observer.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"
#include "kernels/attention/attention.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
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

class EvictionCounter final : public RoutingObserver {
 public:
  void on_decisions(std::uint32_t, const experts::LayerDecision& decision) override {
    evictions += decision.outcome->evicted.size();
  }
  std::size_t evictions = 0;
};

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
    SCOPED_TRACE("cache " + options.cache + ", scheduler " + options.scheduler + ", prefetch " +
                 options.prefetch);
    Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 1 + random() % 5);
    EvictionCounter counter;
    if (!model.config.has_encoder()) engine.observe(&counter);
    Interleaved(engine, texts, random, met).run();
    met.evictions += counter.evictions;
  }
}

// Engines with room for few experts, under every policy of the registry that keeps the routing exact.
std::vector<EngineOptions> every_exact_policy(bool sliced, Bytes cache_bytes) {
  EngineOptions plain = options_for(kSequences);
  plain.suspended_passes = kSuspended;
  plain.cache_bytes = cache_bytes;
  plain.less_cache_will_do = true;
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
    if (prefetch.needs != experts::PrefetchNeeds::kNothing) continue;
    all.push_back(plain);
    all.back().prefetch = prefetch.name;
  }
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
    check(kModels / name, std::vector<EngineOptions>(3, options), seed, met);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(met.mixed, 0u);
  EXPECT_GT(met.shared, 0u);
  EXPECT_GT(met.suspended, 0u);
  EXPECT_GT(met.cancelled, 0u);
  EXPECT_GT(met.long_texts, 0u);
  EXPECT_GT(met.evictions, 0u);
}

TEST(Interleaving, EveryExactPolicy) {
  const testing::ScratchDirectory scratch;
  for (const char* family : {"raw", "split", "sliced"}) {
    const std::uint64_t seed = any_seed();
    SCOPED_TRACE(std::string(family) + ", SLUICE_TEST_SEED=" + std::to_string(seed));
    std::cout << family << ": SLUICE_TEST_SEED=" << seed << '\n';
    std::string path = kModels / "qwen2_moe_a";
    const bool sliced = family == std::string("sliced");
    if (family != std::string("raw")) {
      store::PackOptions options;
      if (sliced) options.slices = codec::SliceBits{8, 4};
      const std::string packed = scratch.file(std::string(family) + ".sluice");
      store::pack(path, packed, model::pack_plan(*store::open_checkpoint(path)), options);
      path = packed;
    }
    Met met;
    check(path, every_exact_policy(sliced, part_of_experts(path)), seed, met);
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(met.evictions, 0u);
  }
}

}  // namespace
}  // namespace sluice::engine
