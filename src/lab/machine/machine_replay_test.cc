// Replays of slices: against the vectors of SPEC §7.7, against a plain second implementation of §4.1 and
// §4.3, and by properties of every replay.
#include "lab/machine/machine_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "base/json/json.h"
#include "experts/decision_log.h"
#include "experts/routing/slice_names.h"
#include "lab/replay/slice_replay.h"
#include "lab/replay/synthetic_routing.h"

namespace sluice::lab {
namespace {

using experts::ConstraintMode, experts::InitialSlices, experts::LsbMiss, experts::PrecisionMode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SlicedModel tiny_model(std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
  const Json config = {{"model_type", "olmoe"},       {"vocab_size", 32},
                       {"hidden_size", 64},           {"intermediate_size", 32},
                       {"num_hidden_layers", layers}, {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},    {"num_experts", experts},
                       {"num_experts_per_tok", k},    {"max_position_embeddings", 4096},
                       {"rms_norm_eps", 1e-5},        {"rope_theta", 10000.0},
                       {"hidden_act", "silu"},        {"norm_topk_prob", false},
                       {"tie_word_embeddings", false}};
  return SlicedModel("tiny", model::parse_config(config, "tiny"));
}

using Token = std::vector<std::pair<std::uint16_t, float>>;  // (expert, weight)

RoutedLayer layer_of(const std::vector<Token>& tokens) {
  RoutedLayer layer;
  layer.begin = {0};
  for (Token token : tokens) {
    std::ranges::sort(token);
    for (const auto& [expert, weight] : token) layer.choices.push_back({.expert = expert, .weight = weight});
    layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
  }
  return layer;
}

RoutedStep decode_step(const Token& token, std::uint32_t context) {
  RoutedStep step;
  step.sequences = {{1, context}};
  step.layers = {layer_of({token})};
  return step;
}

// "0.M miss" for every slice that an event reads or finds, by expert; and the departures.
std::string told(const experts::EventOutcome& outcome) {
  std::string text;
  experts::append_decision(text, 0, 0, outcome);
  return text;
}

TEST(MachineReplay, DecidesAsTheVectorsSay) {
  // SPEC §7.7: slices of one unit; a to e are 0 to 4. Experts with weights of at least .6 are critical.
  RoutedSteps steps;
  steps.layers = 1, steps.experts = 8, steps.top_k = 3;
  const std::vector<Token> tokens = {
      {{0, .7f}, {1, .3f}}, {{0, .55f}, {2, .45f}}, {{2, .7f}, {3, .3f}}, {{4, 1.f}}, {{0, .7f}, {2, .3f}}};
  for (std::size_t i = 0; i < tokens.size(); ++i)
    steps.steps.push_back(decode_step(tokens[i], static_cast<std::uint32_t>(i)));
  MachineReplaySettings settings;
  settings.bytes = {.msb = 1, .lsb = 1};
  settings.memory = 4;
  settings.precision.critical.theta = .6;
  std::vector<std::string> log;
  std::vector<Bytes> read;
  const SlicedModel model = tiny_model(1, 8, 3);
  const auto observe = [&](std::uint64_t, std::uint32_t, const experts::EventOutcome& outcome) {
    log.push_back(told(outcome));
    Bytes bytes = 0;
    for (const auto* used : {&outcome.hits, &outcome.misses})
      for (const experts::Admission& one : *used) bytes += settings.bytes.of(one.to_read());
    read.push_back(bytes);
  };
  const MachineReplayResult result = replay_on_machine(steps, model, slicemoe_machine(), settings, observe);
  EXPECT_THAT(log, ElementsAre("0 0 miss 0=msb+lsb:high,1=msb:low\n", "0 0 hit 0:high miss 2=msb:low\n",
                               "0 0 miss 2=msb>msb:high,3=msb:low out 0/0=lsb\n",
                               "0 0 miss 4=msb:high out 0/1=msb\n", "0 0 hit 2:low miss 0=msb>msb:high\n"));
  EXPECT_THAT(read, ElementsAre(3, 1, 2, 2, 1));
  EXPECT_EQ(result.decode.traffic.flash, 9);
  EXPECT_EQ(result.decode.account.msb_requests, 9u);
  EXPECT_EQ(result.decode.account.msb_misses, 5u);
  EXPECT_EQ(result.decode.account.lsb_requests, 4u);
  EXPECT_EQ(result.decode.account.lsb_misses, 4u);
  EXPECT_EQ(result.decode.account.requested, 18);
  EXPECT_THAT(result.critical, ElementsAre(1, 4, 0, 0));

  // Room for two MSBs: the third is used and not kept.
  steps.steps = {decode_step({{0, .4f}, {1, .35f}, {2, .25f}}, 0)};
  settings.memory = 2;
  log.clear();
  replay_on_machine(steps, model, slicemoe_machine(), settings, observe);
  EXPECT_THAT(log, ElementsAre("0 0 miss 0=msb:low,1=msb:low,2=-:low\n"));
}

// §4.3 literally: two lists, least recently used first, searched from the front.
class PlainCache {
 public:
  PlainCache(Bytes msb, Bytes lsb, Bytes capacity, bool fetch)
      : msb_bytes_(msb), lsb_bytes_(lsb), capacity_(capacity), fetch_(fetch) {}

  struct Use {
    bool msb_read = false, lsb_read = false, high = false;
  };
  // `sel` in score order.
  std::map<int, Use> decode(const std::vector<int>& sel, const std::set<int>& crit) {
    const std::list<int> msb_before = msb_, lsb_before = lsb_;
    const auto in = [](const auto& list, int id) { return std::ranges::find(list, id) != list.end(); };
    std::map<int, Use> use;
    for (const int id : sel) use[id] = {};
    for (const int id : sel) {
      if (in(msb_before, id)) {
        to_end(msb_, id);
        continue;
      }
      use[id].msb_read = true;
      Bytes may_go = 0;
      for (const int other : lsb_) may_go += in(crit, other) ? 0 : lsb_bytes_;
      for (const int other : msb_) may_go += in(sel, other) ? 0 : msb_bytes_;
      if (held() - may_go + msb_bytes_ > capacity_) continue;  // used, not kept
      while (held() + msb_bytes_ > capacity_) {
        const auto lsb = std::ranges::find_if(lsb_, [&](int other) { return !in(crit, other); });
        if (lsb != lsb_.end()) {
          lsb_.erase(lsb);
          continue;
        }
        const int victim = *std::ranges::find_if(msb_, [&](int other) { return !in(sel, other); });
        msb_.remove(victim);
        lsb_.remove(victim);
      }
      msb_.push_back(id);
    }
    for (const int id : sel) {
      if (!crit.contains(id)) continue;
      if (in(lsb_before, id)) {
        use[id].high = true;
        to_end(lsb_, id);
        continue;
      }
      if (!fetch_) continue;
      use[id].lsb_read = use[id].high = true;
      Bytes may_go = 0;
      for (const int other : lsb_) may_go += in(crit, other) ? 0 : lsb_bytes_;
      if (!in(msb_, id) || held() - may_go + lsb_bytes_ > capacity_) continue;
      while (held() + lsb_bytes_ > capacity_)
        lsb_.erase(std::ranges::find_if(lsb_, [&](int other) { return !in(crit, other); }));
      lsb_.push_back(id);
    }
    for (const int id : sel)
      if (!crit.contains(id)) use[id].high = in(lsb_before, id) && in(lsb_, id);
    return use;
  }
  // All experts at high precision; no slice outlives the prompt.
  std::map<int, Use> prompt(const std::vector<int>& sel) {
    std::map<int, Use> use;
    for (const int id : sel)
      use[id] = {.msb_read = std::ranges::find(msb_, id) == msb_.end(),
                 .lsb_read = std::ranges::find(lsb_, id) == lsb_.end(),
                 .high = true};
    msb_.clear();
    lsb_.clear();
    return use;
  }

 private:
  Bytes held() const { return msb_.size() * msb_bytes_ + lsb_.size() * lsb_bytes_; }
  static void to_end(std::list<int>& list, int id) {
    list.remove(id);
    list.push_back(id);
  }
  const Bytes msb_bytes_, lsb_bytes_, capacity_;
  const bool fetch_;
  std::list<int> msb_, lsb_;
};

struct Plain {
  double flash = 0, joules = 0, seconds = 0;
};

// §4.1 literally, with the constants of the machine slicemoe.
void charge(const SlicedModel& model, const experts::ExpertBytes& bytes, const std::vector<int>& sel,
            const std::map<int, double>& tokens, const std::map<int, PlainCache::Use>& use, Plain& out) {
  double flash = 0, read = 0, ops = 0, channel = 0, unit = 0;
  const auto run = [&](int id) {
    const double b = static_cast<double>(bytes.msb + (use.at(id).high ? bytes.lsb : 0));
    return std::max(8 * b / 104e9, 2 * model.expert_weights() * tokens.at(id) / 16.384e12);
  };
  std::map<int, double> arrival;
  for (const int id : sel) {
    if (use.at(id).msb_read) arrival[id] = channel += 8 * static_cast<double>(bytes.msb) / 10e9;
    flash += use.at(id).msb_read ? static_cast<double>(bytes.msb) : 0;
  }
  for (const int id : sel) {
    if (use.at(id).lsb_read) arrival[id] = channel += 8 * static_cast<double>(bytes.lsb) / 10e9;
    flash += use.at(id).lsb_read ? static_cast<double>(bytes.lsb) : 0;
    read += static_cast<double>(bytes.msb + (use.at(id).high ? bytes.lsb : 0));
    ops += 2 * model.expert_weights() * tokens.at(id);
    if (!arrival.contains(id)) unit += run(id);
  }
  std::vector<std::pair<double, int>> order;
  for (const auto& [id, at] : arrival) order.emplace_back(at, id);
  std::ranges::sort(order);
  for (const auto& [at, id] : order) unit = std::max(unit, at) + run(id);
  out.flash += flash;
  out.seconds += std::max(unit, channel);
  out.joules += 8 * (103e-12 * flash + 1.5e-12 * (read + flash)) + ops / 3.18e12;
}

TEST(MachineReplay, IsWhatAPlainImplementationSays) {
  const std::uint64_t seed = 41;
  std::mt19937_64 random(seed);
  const std::uint32_t layers = 2, experts = 6, k = 3;
  const SlicedModel model = tiny_model(layers, experts, k);
  double misses = 0, hits = 0, high = 0;
  for (int instance = 0; instance < 60; ++instance) {
    MachineReplaySettings settings;
    settings.bytes = {.msb = 3000 + random() % 3000, .lsb = 2000 + random() % 3000};
    settings.memory = settings.bytes.msb + random() % (layers * experts * 9000);
    settings.precision.critical.theta = .2 + .01 * static_cast<double>(random() % 40);
    const bool fetch = random() % 2 == 0;
    settings.slices.rules.lsb_miss = fetch ? LsbMiss::kFetch : LsbMiss::kSkip;
    settings.slices.initial = InitialSlices::kEmpty;
    PlainCache cache(settings.bytes.msb, settings.bytes.lsb, settings.memory, fetch);
    RoutedSteps steps;
    steps.layers = layers, steps.experts = experts, steps.top_k = k;
    Plain prefill, decode;
    std::uint32_t position = 0;
    for (int s = 0; s < 40; ++s) {
      RoutedStep step;
      step.prompt = s == 0 || s == 20;
      if (step.prompt) position = 0;
      const std::uint32_t tokens = step.prompt ? 5 : 1;
      step.sequences = {{tokens, position}};
      const SlicedModel::Stretch stretch[] = {{static_cast<double>(tokens), static_cast<double>(position)}};
      position += tokens;
      Plain& plain = step.prompt ? prefill : decode;
      const SlicedModel::Work rest = model.rest(slicemoe_machine(), stretch);
      plain.seconds += rest.seconds;
      plain.joules += slicemoe_machine().energy(rest.traffic).total();
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        std::vector<Token> chosen;
        std::map<int, double> count, best;
        std::set<int> crit;
        for (std::uint32_t t = 0; t < tokens; ++t) {
          Token token;
          double sum = 0;
          while (token.size() < k) {
            const auto expert = static_cast<std::uint16_t>(std::min(random() % experts, random() % experts));
            if (std::ranges::any_of(token, [&](const auto& one) { return one.first == expert; })) continue;
            const auto weight = static_cast<float>(1 + random() % 1000) / 4096;
            token.emplace_back(expert, weight);
            sum += weight;
          }
          for (const auto& [expert, weight] : token) {
            const int id = static_cast<int>(layer * experts + expert);
            count[id] += 1;
            best[id] = std::max(best[id], double{weight});
            if (weight / sum >= settings.precision.critical.theta) crit.insert(id);
          }
          chosen.push_back(token);
        }
        std::vector<int> sel;
        for (const auto& [id, weight] : best) sel.push_back(id);
        std::ranges::stable_sort(sel, std::ranges::greater(), [&](int id) { return best[id]; });
        const auto use = step.prompt ? cache.prompt(sel) : cache.decode(sel, crit);
        charge(model, settings.bytes, sel, count, use, plain);
        step.layers.push_back(layer_of(chosen));
        for (const auto& [id, one] : use) {
          misses += one.msb_read || one.lsb_read ? 1 : 0;
          hits += one.msb_read || one.lsb_read ? 0 : 1;
          high += one.high && !step.prompt ? 1 : 0;
        }
      }
      steps.steps.push_back(std::move(step));
    }
    const MachineReplayResult result = replay_on_machine(steps, model, slicemoe_machine(), settings);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", instance " << instance);
    EXPECT_EQ(result.prefill.traffic.flash, prefill.flash);
    EXPECT_EQ(result.decode.traffic.flash, decode.flash);
    EXPECT_NEAR(result.prefill.energy.total() / prefill.joules, 1, 1e-12);
    EXPECT_NEAR(result.decode.energy.total() / decode.joules, 1, 1e-12);
    EXPECT_NEAR(result.prefill.seconds / prefill.seconds, 1, 1e-12);
    EXPECT_NEAR(result.decode.seconds / decode.seconds, 1, 1e-12);
    const MachinePhase& phase = result.decode;
    EXPECT_NEAR(phase.rest_s + phase.compute_s + phase.wait_s, phase.seconds, 1e-12 * phase.seconds);
  }
  EXPECT_GT(misses, 1000);
  EXPECT_GT(hits, 1000);
  EXPECT_GT(high, 1000);
}

RoutedSteps synthetic_steps(std::uint64_t seed, std::uint32_t layers = 3, std::uint32_t experts = 16,
                            std::uint32_t k = 4) {
  SyntheticTrace trace(
      {.layers = layers, .experts = experts, .top_k = k, .prompts = 2, .tokens = 90, .seed = seed}, 40);
  return read_routed_steps(trace);
}

MachineReplaySettings usual(double share, std::uint32_t layers = 3, std::uint32_t experts = 16) {
  MachineReplaySettings settings;
  settings.bytes = slice_bytes(6144, {8, 4});
  settings.memory = static_cast<Bytes>(share * layers * experts *
                                       static_cast<double>(settings.bytes.msb + settings.bytes.lsb));
  return settings;
}

// SPEC I8, and accounts that add up, for every combination.
TEST(MachineReplay, HitsMissesAndBytesAddUp) {
  const RoutedSteps steps = synthetic_steps(3);
  const SlicedModel model = tiny_model(3, 16, 4);
  int combinations = 0;
  for (const char* router : {"exact", "cache-prior", "cumsum"})
    for (const ConstraintMode mode :
         {ConstraintMode::kNone, ConstraintMode::kBoost, ConstraintMode::kAdaptive, ConstraintMode::kHard})
      for (const char* cache : {"slice-lru", "lru"})
        for (const PrecisionMode precision :
             {PrecisionMode::kDbsc, PrecisionMode::kHigh, PrecisionMode::kLow})
          for (const InitialSlices initial : {InitialSlices::kWarmup, InitialSlices::kEmpty,
                                              InitialSlices::kLastLayer, InitialSlices::kRandom}) {
            MachineReplaySettings settings = usual(.4);
            settings.router = router;
            settings.cache = cache;
            settings.constraint.mode = mode;
            settings.constraint.lambda = .3;
            settings.precision.mode = precision;
            settings.slices.initial = initial;
            settings.slices.warmup.rho = experts::usual_rho(precision);
            SCOPED_TRACE(::testing::Message()
                         << router << " " << static_cast<int>(mode) << " " << cache << " "
                         << static_cast<int>(precision) << " " << static_cast<int>(initial));
            const bool valid = (mode == ConstraintMode::kNone || settings.router != "exact") &&
                               !(settings.router == "cumsum" &&
                                 (mode == ConstraintMode::kBoost || mode == ConstraintMode::kAdaptive)) &&
                               (settings.cache == "slice-lru"
                                    ? precision != PrecisionMode::kLow || initial != InitialSlices::kLastLayer
                                    : precision != PrecisionMode::kDbsc);
            if (!valid) {
              EXPECT_THROW(replay_on_machine(steps, model, slicemoe_machine(), settings), Error);
              continue;
            }
            ++combinations;
            std::uint64_t requests = 0, events = 0;
            double read = 0;
            const auto observe = [&](std::uint64_t event, std::uint32_t layer,
                                     const experts::EventOutcome& outcome) {
              EXPECT_EQ(event, events++);
              EXPECT_EQ(layer, event % 3);
              for (const auto* used : {&outcome.hits, &outcome.misses})
                for (const experts::Admission& one : *used) {
                  ++requests;
                  read += static_cast<double>(settings.bytes.of(one.to_read()));
                  EXPECT_TRUE(experts::is_legal(one.parts));
                  EXPECT_TRUE(one.view.has(experts::Part::kMsb));
                }
            };
            const MachineReplayResult result =
                replay_on_machine(steps, model, slicemoe_machine(), settings, observe);
            EXPECT_EQ(result.prefill.requests + result.decode.requests, requests);
            EXPECT_EQ(result.prefill.traffic.flash + result.decode.traffic.flash, read);
            EXPECT_EQ(result.decode.traffic.flash, result.decode.account.missed);
            EXPECT_EQ(result.decode.requests, result.decode.account.msb_requests);
            EXPECT_EQ(result.decode.requests, 100u * 3 * 4);
            EXPECT_EQ(result.prompts, 2u);
            EXPECT_EQ(result.decode.tokens, 100u);
            EXPECT_EQ(result.prefill.tokens, 80u);
            EXPECT_EQ(result.recorded_differs, 0u);
            EXPECT_EQ(result.prefill.account.downgrades, 0u);
            // The account covers all steps except the first ten behind each prompt.
            double missed = 0, requested = 0, joules = 0, seconds = 0;
            ASSERT_EQ(result.steps.size(), 100u);
            for (std::size_t s = 0; s < 100; ++s) {
              joules += result.steps[s].joules;
              seconds += result.steps[s].seconds;
              if (s % 50 < 10) continue;
              missed += result.steps[s].missed;
              requested += result.steps[s].requested;
            }
            EXPECT_EQ(result.accounted.missed, missed);
            EXPECT_EQ(result.accounted.requested, requested);
            EXPECT_NEAR(joules, result.decode.energy.total(), 1e-9 * joules);
            EXPECT_NEAR(seconds, result.decode.seconds, 1e-9 * seconds);
            EXPECT_EQ(result.changes.tokens, 300u);
            if (settings.router == "exact") {
              EXPECT_EQ(result.changes.substituted, 0u);
              EXPECT_EQ(result.replaced, 0u);
            } else {
              EXPECT_GT(result.changes.substituted, 0u);
            }
            const MachineReplayResult again = replay_on_machine(steps, model, slicemoe_machine(), settings);
            EXPECT_EQ(again.decision_hash, result.decision_hash);
            EXPECT_EQ(again.decode.seconds, result.decode.seconds);
            EXPECT_EQ(again.decode.energy.total(), result.decode.energy.total());
            EXPECT_EQ(again.changes.mass_lost, result.changes.mass_lost);
          }
  EXPECT_EQ(combinations, 7 * (5 * 4 - 1));
}

TEST(MachineReplay, AHardLimitIsKept) {
  const RoutedSteps steps = synthetic_steps(5);
  const SlicedModel model = tiny_model(3, 16, 4);
  for (const double share : {.3, .6})
    for (const double limit : {.02, .1, .3}) {
      MachineReplaySettings settings = usual(share);
      settings.router = "cache-prior";
      settings.cache_aware.lambda = 0;
      const double free = replay_on_machine(steps, model, slicemoe_machine(), settings).accounted.rate();
      settings.constraint = {.mode = ConstraintMode::kHard, .limit = limit};
      const MachineReplayResult result = replay_on_machine(steps, model, slicemoe_machine(), settings);
      if (result.violations == 0) {
        EXPECT_LE(result.accounted.rate(), limit);
      }
      EXPECT_LE(result.accounted.rate(), std::max(limit, free));
      if (free <= limit) continue;
      EXPECT_GT(result.replaced, 0u);
      EXPECT_GT(result.changes.mass_lost, 0);
    }
}

// SPEC I11.
TEST(MachineReplay, NothingMissesInMemoryThatHoldsAll) {
  RoutedSteps steps = synthetic_steps(7);
  std::erase_if(steps.steps, [](const RoutedStep& step) { return step.prompt; });
  steps.prompts = steps.prompt_tokens = 0;
  const std::size_t once = steps.steps.size();
  for (std::size_t s = 0; s < once; ++s) steps.steps.push_back(steps.steps[s]);
  const SlicedModel model = tiny_model(3, 16, 4);
  for (const PrecisionMode precision : {PrecisionMode::kDbsc, PrecisionMode::kHigh}) {
    MachineReplaySettings settings = usual(1);
    settings.precision.mode = precision;
    const MachineReplayResult result = replay_on_machine(steps, model, slicemoe_machine(), settings);
    EXPECT_GT(result.decode.traffic.flash, 0);
    for (std::size_t s = once; s < result.steps.size(); ++s) EXPECT_EQ(result.steps[s].missed, 0) << s;
    EXPECT_LE(result.decode.traffic.flash, static_cast<double>(settings.memory));
  }
}

TEST(MachineReplay, ChunksOfAPromptAreOnePrompt) {
  RoutedSteps whole = synthetic_steps(9), chunked = whole;
  chunked.steps.clear();
  for (const RoutedStep& step : whole.steps) {
    if (!step.prompt) {
      chunked.steps.push_back(step);
      continue;
    }
    for (const bool second : {false, true}) {
      RoutedStep half = step;
      half.sequences = {{20, second ? 20u : 0u, step.sequences.front().sequence}};
      for (RoutedLayer& layer : half.layers) {
        const std::size_t from = second ? 20 : 0;
        const std::vector<std::uint32_t> begin = layer.begin;
        layer.choices.assign(layer.choices.begin() + begin[from], layer.choices.begin() + begin[from + 20]);
        layer.begin.clear();
        for (std::size_t t = from; t <= from + 20; ++t) layer.begin.push_back(begin[t] - begin[from]);
        layer.logits =
            std::vector<float>(layer.logits.begin() + static_cast<std::ptrdiff_t>(from * 16),
                               layer.logits.begin() + static_cast<std::ptrdiff_t>((from + 20) * 16));
      }
      chunked.steps.push_back(half);
    }
  }
  // In memory that holds everything, only a prompt's counts decide what it leaves behind.
  MachineReplaySettings settings = usual(1);
  const SlicedModel model = tiny_model(3, 16, 4);
  const MachineReplayResult a = replay_on_machine(whole, model, slicemoe_machine(), settings);
  const MachineReplayResult b = replay_on_machine(chunked, model, slicemoe_machine(), settings);
  EXPECT_EQ(a.decode.traffic.flash, b.decode.traffic.flash);
  EXPECT_EQ(a.decode.account.lsb_misses, b.decode.account.lsb_misses);
  EXPECT_GT(a.decode.account.lsb_misses, 0u);
}

// Synthetic routing of a model in slices, as `sluice trace` would have recorded it.
class SlicedTrace final : public SyntheticTrace {
 public:
  SlicedTrace(const SyntheticRouting& settings, std::size_t prefill, const experts::ExpertBytes& bytes)
      : SyntheticTrace(settings, prefill) {
    header_.sizes.emplace(settings.layers, settings.experts);
    for (std::uint16_t layer = 0; layer < settings.layers; ++layer)
      for (std::uint16_t e = 0; e < settings.experts; ++e)
        header_.sizes->set({layer, e}, bytes, bytes.msb + bytes.lsb, bytes.lsb);
  }
};

// The replay of a run's trace, which decides like the engine, also decides like this replay.
TEST(MachineReplay, DecidesAsTheReplayOfARun) {
  const SyntheticRouting routing = {
      .layers = 3, .experts = 16, .top_k = 4, .prompts = 2, .tokens = 90, .seed = 11};
  const SlicedModel model = tiny_model(3, 16, 4);
  std::set<std::uint64_t> hashes;
  for (const PrecisionMode precision : {PrecisionMode::kDbsc, PrecisionMode::kHigh})
    for (const InitialSlices initial :
         {InitialSlices::kWarmup, InitialSlices::kEmpty, InitialSlices::kLastLayer, InitialSlices::kRandom})
      for (const LsbMiss lsb_miss : {LsbMiss::kFetch, LsbMiss::kSkip}) {
        MachineReplaySettings settings = usual(.35);
        settings.precision.mode = precision;
        settings.slices.initial = initial;
        settings.slices.rules = {lsb_miss, .1};
        settings.seed = 5;
        SlicedTrace trace(routing, 40, settings.bytes), same(routing, 40, settings.bytes);
        const SliceReplayResult run =
            replay_slices(trace, {.capacity = settings.memory,
                                  .seed = settings.seed,
                                  .slices = {settings.precision, settings.slices, settings.constraint}});
        const MachineReplayResult result =
            replay_on_machine(read_routed_steps(same), model, slicemoe_machine(), settings);
        EXPECT_EQ(result.decision_hash, run.decision_hash);
        EXPECT_EQ(result.prefill.traffic.flash + result.decode.traffic.flash,
                  static_cast<double>(run.bytes_read));
        EXPECT_EQ(result.accounted.missed, run.account.missed);
        EXPECT_EQ(result.decode.account.downgrades, run.slices.downgrades);
        hashes.insert(run.decision_hash);
      }
  EXPECT_EQ(hashes.size(), 16u);
}

TEST(MachineReplay, RefusesWhatItCannotDo) {
  RoutedSteps steps = synthetic_steps(1);
  const SlicedModel model = tiny_model(3, 16, 4);
  const auto refusal = [&](const MachineReplaySettings& settings, const SlicedModel& of) -> std::string {
    try {
      replay_on_machine(steps, of, slicemoe_machine(), settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(usual(.5), model), "");
  EXPECT_THAT(refusal(usual(.5), tiny_model(3, 16, 3)), HasSubstr("another model"));
  MachineReplaySettings settings = usual(.5);
  settings.memory = 100;
  EXPECT_THAT(refusal(settings, model), HasSubstr("--memory-experts"));
  settings = usual(.5);
  settings.precision.mode = PrecisionMode::kFull;
  EXPECT_THAT(refusal(settings, model), HasSubstr("--precision"));
  settings = usual(.5);
  settings.cache = "zip-pools";
  EXPECT_THAT(refusal(settings, model), HasSubstr("--cache"));
  settings = usual(.5);
  settings.router = "cache-prior";
  steps.logits = false;
  EXPECT_THAT(refusal(settings, model), HasSubstr("--router"));
}

}  // namespace
}  // namespace sluice::lab
