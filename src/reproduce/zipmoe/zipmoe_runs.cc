#include "reproduce/zipmoe/zipmoe_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "reproduce/zipmoe/zipmoe_replay.h"
#include "tokenizer/tokenizer.h"

namespace sluice::reproduce {
namespace {

constexpr const char* kPrompts[] = {"Once upon a time there was a fisherman who lived by the sea.",
                                    "The old woman looked at the door and said nothing.",
                                    "In the middle of the night the king rose from his bed.",
                                    "A fox went out in search of food, and met a lion.",
                                    "When the ship came near the shore, the sailors cried out.",
                                    "She had three sons, and the youngest was the wisest.",
                                    "The road through the forest was long and very dark.",
                                    "He put his hand into his pocket and drew out a letter.",
                                    "It was the best house in the village, with a red roof.",
                                    "The two brothers had not spoken for seven years.",
                                    "A wolf saw a lamb drinking at a brook.",
                                    "My father told me this story when I was a child.",
                                    "The captain ordered the men to take in the sails.",
                                    "There was once a poor miller who had a daughter.",
                                    "The horse stopped at the bridge and would not go on.",
                                    "On the first day of spring the snow began to melt."};

}  // namespace

ZipmoeRuns::ZipmoeRuns(const ZipmoeSettings& settings)
    : settings_(settings),
      tokens_(settings.tokens != 0 ? settings.tokens
              : settings.quick     ? 16
                                   : 48),
      repeats_(settings.runs != 0 ? settings.runs
               : settings.quick   ? 2
                                  : 5),
      batches_(settings.quick ? std::vector<std::size_t>{1, 4} : std::vector<std::size_t>{1, 4, 16}),
      lengths_(settings.quick
                   ? std::vector<std::size_t>{tokens_ / 2, tokens_ * 2}
                   : std::vector<std::size_t>{std::max<std::size_t>(2, tokens_ / 3), tokens_, tokens_ * 3}) {
  SLUICE_CHECK(tokens_ >= 4, "quarters of the output must be a token");
  const std::size_t most = settings.packed.model->config.max_positions,
                    needed = positions(1, lengths_.back());
  if (needed > most)
    throw Error(ErrorKind::kUsage, "the longest output does not fit the model's context")
        .in(Setting::kPredict)
        .expected(fmt::format("at most {} positions", most))
        .found(fmt::format("{} of a prompt and {} tokens, {} times {}", needed, lengths_.back(),
                           lengths_.back() / tokens_, mark(Setting::kPredict)))
        .fix("give fewer tokens");
  if (!settings.trace.empty()) check_zipmoe_trace(settings.trace);  // checked before minutes of runs
  options_ = settings.options;
  options_.positions = positions(1, tokens_);
}

void ZipmoeRuns::stage(const std::string& text) const {
  if (settings_.on_stage) settings_.on_stage(text);
  check_interrupted();
}

void ZipmoeRuns::check_interrupted() const { stop_if(settings_.interrupted); }

std::vector<tokenizer::TokenId> ZipmoeRuns::prompt(std::size_t index) const {
  if (settings_.tokenizer != nullptr)
    return settings_.tokenizer->encode(kPrompts[index % std::size(kPrompts)], tokenizer::AddSpecial::kYes);
  std::vector<tokenizer::TokenId> ids;
  for (std::size_t i = 0; i < 16; ++i)
    ids.push_back(static_cast<tokenizer::TokenId>((7919 * (i + 1) + 104729 * index) %
                                                  settings_.packed.model->config.vocab));
  return ids;
}

std::size_t ZipmoeRuns::positions(std::size_t batch, std::size_t tokens) const {
  std::size_t longest = 0;
  for (std::size_t b = 0; b < batch; ++b) longest = std::max(longest, prompt(b).size());
  return longest + tokens;
}

std::vector<engine::GenerateRequest> ZipmoeRuns::requests(std::size_t batch, std::size_t tokens) const {
  std::vector<engine::GenerateRequest> list(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    list[b].prompt = prompt(b);
    list[b].max_tokens = tokens;
    list[b].sampler.temperature = 0;
    list[b].ignore_eos = true;
  }
  return list;
}

lab::Comparison ZipmoeRuns::compare(const std::string& what, const std::vector<std::string>& presets,
                                    Bytes budget, std::size_t batch, std::size_t tokens) {
  lab::CompareSettings settings;
  settings.requests = requests(batch, tokens);
  settings.options = options_;
  settings.options.memory = budget;
  settings.options.positions = positions(batch, tokens);
  settings.runs = repeats_;
  settings.tokenizer = settings_.tokenizer;
  settings.interrupted = settings_.interrupted;
  settings.on_run = [&](std::size_t done, std::size_t all) {
    stage(fmt::format("{}: run {} of {}", what, done, all));
  };
  std::vector<lab::Contender> contenders;
  for (const std::string& preset : presets) {
    lab::Contender contender =
        experts::find_preset(preset).whole_experts ? settings_.whole : settings_.packed;
    contender.preset = preset;
    contenders.push_back(contender);
  }
  lab::Comparison result = comparer_.run(contenders, settings);
  all_same_ = all_same_ && result.same_texts();
  return result;
}

std::string ZipmoeRuns::compare_command(const std::vector<std::string>& presets, Bytes budget,
                                        std::size_t batch, std::size_t tokens) const {
  std::string names, prompts;
  for (const std::string& name : presets) names += (names.empty() ? "" : ",") + name;
  for (std::size_t b = 0; b < batch; ++b) {
    if (settings_.tokenizer != nullptr) {
      prompts += fmt::format(" {} \"{}\"", flag(Setting::kPrompt), kPrompts[b % std::size(kPrompts)]);
      continue;
    }
    prompts += fmt::format(" {} {}", flag(Setting::kTokens), fmt::join(prompt(b), ","));
  }
  return fmt::format("sluice compare {} {} {} {} {}{} {} {} {} {} {} {}{}", settings_.packed_name,
                     flag(Setting::kWhole), settings_.whole_name, flag(Setting::kPreset), names, prompts,
                     flag(Setting::kPredict), tokens, flag(Setting::kMemory), budget, flag(Setting::kRuns),
                     repeats_, settings_.flags);
}

Bytes ZipmoeRuns::budget_for(double share) const {
  engine::EngineOptions options = options_;
  options.preset = "z-basic-lru";
  options.scheduler = "serial";  // needs no profile
  Bytes all_experts = 0;
  const auto experts_at = [&](std::optional<Bytes> memory, Bytes* minimum) {
    options.memory = memory;
    const engine::Engine engine(
        *settings_.packed.checkpoint, *settings_.packed.model,
        engine::resolve(options, *settings_.packed.checkpoint, *settings_.packed.model));
    if (minimum != nullptr) *minimum = engine.report().memory.minimum;
    all_experts = 0;
    for (const model::ExpertPieces& pieces : settings_.packed.model->experts)
      all_experts +=
          engine.report()
              .experts.sizes()
              .bytes({static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)})
              .full;
    return engine.report().memory.experts;
  };
  Bytes minimum = 0;
  experts_at(std::nullopt, &minimum);
  const double wanted = share * static_cast<double>(all_experts);
  double memory = static_cast<double>(minimum) + wanted + .05 * static_cast<double>(all_experts);
  for (int i = 0; i < 5; ++i) {
    check_interrupted();
    memory += wanted - static_cast<double>(experts_at(static_cast<Bytes>(memory), nullptr));
    memory = std::max(memory, static_cast<double>(minimum));
  }
  return round_up(static_cast<Bytes>(memory), 64 * kKiB);
}

}  // namespace sluice::reproduce
