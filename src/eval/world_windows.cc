#include "eval/world_windows.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/session/prefix_cache.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "eval/logits.h"

namespace sluice::eval {
namespace {

using engine::Engine;
using engine::Sequence;
using engine::SequenceSpan;
using experts::StepKind;
using tokenizer::TokenId;

Json counts_json(const experts::WorldCounts& counts) {
  return {{"tokens", counts.tokens},
          {"places", counts.places},
          {"low", counts.low},
          {"mass", counts.mass},
          {"bytes", counts.bytes}};
}

experts::WorldCounts counts_from_json(const JsonObject& object) {
  constexpr double kMost = 1e300;
  const auto count = [&](const char* key) {
    return static_cast<std::uint64_t>(object.integer(key, 0, std::int64_t{1} << 60));
  };
  return {.tokens = count("tokens"),
          .places = count("places"),
          .low = object.real("low", 0, kMost),
          .mass = object.real("mass", 0, kMost),
          .bytes = count("bytes")};
}

void add(std::span<const float> logits, TokenId next, WindowScore& score) {
  score.nll += Distribution(logits).negative_log_likelihood(next);
  score.predicted += 1;
}

}  // namespace

Json to_json(const WindowOfWorlds& window) {
  Json worlds = Json::array();
  for (const std::optional<WorldScore>& one : window.worlds)
    worlds.push_back(one ? Json{{"score", to_json(one->window)}, {"counts", counts_json(one->counts)}}
                         : Json());
  return {{"plain", to_json(window.plain)}, {"worlds", std::move(worlds)}};
}

WindowOfWorlds window_of_worlds_from_json(const Json& json, const std::string& name, std::size_t worlds) {
  const JsonObject object(json, name);
  WindowOfWorlds window{
      .plain = window_score_from_json(object.object("plain").value(), Compared::kNo, name + ": plain")};
  const Json* const list = object.find("worlds");
  if (list == nullptr || !list->is_array() || list->size() != worlds)
    object.fail("worlds", std::to_string(worlds) + " worlds");
  for (const Json& one : *list) {
    std::optional<WorldScore>& world = window.worlds.emplace_back();
    if (one.is_null()) continue;
    const JsonObject entry(one, name + ": worlds");
    world = WorldScore{
        window_score_from_json(entry.object("score").value(), Compared::kNo, name + ": worlds: score"),
        counts_from_json(entry.object("counts"))};
    if (world->window.predicted != window.plain.predicted)
      entry.fail("score", "as many tokens as the plain window");
  }
  return window;
}

WorldWindows::WorldWindows(Engine& engine, std::span<const engine::WorldPlan> plans,
                           const SteppedWindows& windows)
    : engine_(engine), plans_(plans), windows_(windows) {
  SLUICE_CHECK(windows.prompt > 0 && windows.window >= windows.prompt + 2);
}

WindowOfWorlds WorldWindows::score(std::span<const TokenId> text, std::size_t w,
                                   std::span<const std::uint8_t> wanted,
                                   const std::function<bool(std::size_t)>& go_on) {
  const std::size_t begin = w * windows_.window, prompt = windows_.prompt;
  const std::span<const TokenId> window = text.subspan(begin, std::min(windows_.window, text.size() - begin));
  const auto check = [&](std::size_t taken) {
    if (!go_on(taken)) throw interrupted_error();
  };
  WindowOfWorlds result;
  result.worlds.resize(plans_.size());
  std::vector<const engine::WorldPlan*> plans;
  std::vector<std::size_t> world_of;  // by span of a step
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (wanted[i] == 0) continue;
    plans.push_back(&plans_[i]);
    world_of.push_back(i);
    result.worlds[i].emplace();
  }
  const std::unique_ptr<experts::Worlds> worlds =
      plans.empty() ? nullptr : engine::make_worlds(engine_, plans);

  check(0);
  std::vector<std::unique_ptr<Sequence>> sequences;
  {
    const std::unique_ptr<Sequence> plain = engine_.new_sequence();
    engine_.prefill(*plain, window.first(prompt), {[](std::size_t) { return false; }, {}}, {}, worlds.get());
    engine_.prefixes().share(*plain, window.first(prompt));
    for (std::size_t i = 0; i < plans.size(); ++i) {
      sequences.push_back(engine_.prefixes().begin(window.first(prompt + 1), window.size()));
      SLUICE_CHECK(sequences.back() != nullptr && sequences.back()->length() == prompt,
                   "a world does not find its prompt");
    }
    // The logits of a token predict the token behind it.
    engine_.prefill(*plain, window.subspan(prompt),
                    {[&](std::size_t t) { return prompt + t + 1 < window.size(); },
                     [&](std::size_t t, std::span<const float> logits) {
                       check(0);
                       add(logits, window[prompt + t + 1], result.plain);
                     }});
  }
  if (plans.empty()) return result;

  std::vector<TokenId> tokens(plans.size());
  std::vector<SequenceSpan> spans;
  for (std::size_t i = 0; i < plans.size(); ++i)
    spans.push_back(engine::next_span(*sequences[i], i, 1, StepKind::kDecode));
  for (std::size_t t = prompt; t < window.size(); ++t) {
    check(t);
    std::ranges::fill(tokens, window[t]);
    engine_.step({.tokens = tokens, .spans = spans, .worlds = worlds.get()},
                 {[&](std::size_t) { return t + 1 < window.size(); },
                  [&](std::size_t i, std::span<const float> logits) {
                    add(logits, window[t + 1], result.worlds[world_of[i]]->window);
                  }});
  }
  for (std::size_t i = 0; i < plans.size(); ++i) result.worlds[world_of[i]]->counts = worlds->counts(i);
  return result;
}

}  // namespace sluice::eval
