// `sluice eval` of a choice task: finds which of some answers a model considers most likely.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "commands/eval_command.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "eval/identity.h"
#include "eval/state.h"
#include "eval/tasks/choice_score.h"
#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_file.h"
#include "kernels/attention/attention.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/device_report.h"
#include "report/energy_report.h"
#include "report/memory_report.h"
#include "report/progress.h"
#include "report/run_json.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "store/checkpoint.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace eval_choices_command {

constexpr std::size_t kLogitRows = 64;
constexpr Bytes kMostDataBytes = 256 * kMiB;

std::size_t most_tokens(const EvalOptions& options, const model::Model& model) {
  const std::size_t most = model.config.max_positions;
  if (options.window == 0) return most;
  const auto window = static_cast<std::size_t>(options.window);
  if (window > most)
    throw Error(ErrorKind::kUsage, "items would be longer than the model's context")
        .in(Setting::kCtx)
        .expected(fmt::format("2 to {}", most))
        .found(std::to_string(window))
        .fix("give a smaller " + Setting::kCtx);
  return window;
}

// The requested items as requests.
struct Work {
  std::vector<eval::ChoiceItem> items;
  std::vector<std::vector<eval::ChoiceRequest>> requests;
  std::size_t choices = 0, scored = 0, cut = 0;  // totals: requests, tokens of answers, requests that are cut
  std::size_t longest = 0, longest_answer = 0;   // in one request: tokens fed, and tokens scored
};

Work prepare(const EvalOptions& options, const OpenModel& open, const std::string& data) {
  Work work;
  work.items = eval::find_choice_task(options.task).read(data, options.data);
  if (options.limit != 0)
    work.items.resize(std::min(work.items.size(), static_cast<std::size_t>(options.limit)));
  const std::size_t most = most_tokens(options, open.model);
  for (const eval::ChoiceItem& item : work.items) {
    const std::string place = fmt::format("{}, item {}", options.data, work.requests.size() + 1);
    work.requests.push_back(eval::encode_choices(*open.tokenizer, item, most, place));
    for (const eval::ChoiceRequest& request : work.requests.back()) {
      ++work.choices;
      work.scored += request.tokens.size() - request.scored;
      work.cut += request.scored < request.context_tokens;
      work.longest = std::max(work.longest, request.fed());
      work.longest_answer = std::max(work.longest_answer, request.tokens.size() - request.scored);
    }
  }
  return work;
}

// Room for the choices of an item beside each other: the first of them whole, and of the others what follows
// their common front. Where they have none, they wait for each other.
void reserve(const Work& work, engine::EngineOptions& settings) {
  std::size_t most = 1;
  for (const std::vector<eval::ChoiceRequest>& item : work.requests) most = std::max(most, item.size());
  const auto blocks = [](std::size_t tokens) {
    return (tokens + kernels::kCacheBlock - 1) / kernels::kCacheBlock;
  };
  settings.positions = std::max<std::size_t>(work.longest, 1);
  settings.sequences = most;
  settings.kv_tokens = kernels::kCacheBlock *
                       std::min(most * blocks(settings.positions),
                                blocks(settings.positions) + (most - 1) * (blocks(work.longest_answer) + 1));
}

// Tokens of answers that a step predicts when the first `prompt` tokens of a request are its prompt.
std::size_t stepped_tokens(const Work& work, std::size_t prompt) {
  std::size_t stepped = 0;
  for (const std::vector<eval::ChoiceRequest>& item : work.requests)
    for (const eval::ChoiceRequest& request : item)
      for (std::size_t t = request.scored; t < request.tokens.size();
           ++t)  // predicted by the token before it
        stepped += t - 1 >= prompt;
  return stepped;
}

// Hash of the first items' tokens: a state with fewer or more items belongs to the same evaluation.
std::string tokenizer_hash(const OpenModel& open, const std::string& data) {
  constexpr std::size_t kSome = 64 * kKiB;
  std::string_view some = std::string_view(data).substr(0, kSome);
  while (!some.empty() && (static_cast<unsigned char>(some.back()) & 0x80) != 0) some.remove_suffix(1);
  const std::vector<tokenizer::TokenId> ids = open.tokenizer->encode(some, tokenizer::AddSpecial::kYes);
  return hex64(xxh3(std::as_bytes(std::span(ids))));
}

Json error_json(const eval::Share& share) { return share.error ? Json(*share.error) : Json(nullptr); }

void print(const EvalOptions& options, const Work& work, const eval::ChoiceMetrics& metrics,
           const engine::Engine& engine, std::size_t stepped, std::size_t resumed,
           const EnergyReport& energy) {
  if (options.engine.json) {
    Json json = {{"task", options.task},
                 {"items", work.items.size()},
                 {"choices", work.choices},
                 {"tokens", work.scored},
                 {"cut", work.cut},
                 {"prefill", prefill_json(prompt_tokens(options, engine))},
                 {"stepped", stepped},
                 {"resumed", resumed},
                 {"acc", metrics.acc.mean},
                 {"acc_stderr", error_json(metrics.acc)},
                 {"acc_norm", metrics.acc_norm.mean},
                 {"acc_norm_stderr", error_json(metrics.acc_norm)},
                 {"acc_bytes", metrics.acc_bytes.mean},
                 {"acc_bytes_stderr", error_json(metrics.acc_bytes)},
                 {"memory", memory_json(engine.report())},
                 {"io", io_json(engine.report())},
                 {"experts", experts_json(engine.report())},
                 {"energy_model", energy.json()}};
    add_device(json, engine.report());
    std::cout << json.dump() << '\n';
    return;
  }
  const auto line = [](const char* name, const eval::Share& share) {
    return eval_row(name, fmt::format("{:.4f}{}", share.mean,
                                      share.error ? fmt::format(" ± {:.4f}", *share.error) : std::string()));
  };
  print_wrapped(fmt::format("{}: {} items, {} answers of {} tokens in all", options.task, work.items.size(),
                            work.choices, work.scored));
  std::cout << line("acc", metrics.acc) << line("acc_norm", metrics.acc_norm)
            << line("acc_bytes", metrics.acc_bytes);
  print_losses(engine, resumed, work.items.size());
  print_device(engine);
  if (work.cut > 0)
    print_wrapped(
        fmt::format("{} of the questions were longer than the context and were cut in front", work.cut));
}

}  // namespace eval_choices_command
}  // namespace

void evaluate_choices(const EvalOptions& options) {
  using namespace eval_choices_command;
  const EngineFlags& flags = options.engine;
  engine::EngineOptions settings = engine_options(flags);
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  check_decoder(open.model, flags.model);
  const std::string data = eval::read_data_file(options.data, kMostDataBytes);
  const Work work = prepare(options, open, data);
  check_output();
  reserve(work, settings);
  engine::Engine engine(*open.checkpoint, open.model, engine::resolve(settings, *open.checkpoint, open.model),
                        std::min(kLogitRows, work.longest_answer));
  check_engine(options, engine);
  const std::size_t prompt = prompt_tokens(options, engine);
  const std::size_t stepped = stepped_tokens(work, prompt);
  warn_of_few_steps(options, engine, stepped, work.scored);
  const EnergyReport energy(engine, options.machine, options.engine.json);
  if (energy.observer() != nullptr) engine.observe(energy.observer());

  Json identity = eval::identity_of(engine);
  identity.update({{"task", options.task},
                   {"data", sha256_hex(std::as_bytes(std::span(data)))},
                   {"tokens", tokenizer_hash(open, data)},
                   {"ctx", most_tokens(options, open.model)},
                   {"prefill", prefill_json(prompt)}});
  eval::State state(options.state, std::move(identity));

  eval::ChoiceScorer scorer(engine, prompt);
  Progress progress("eval: items", work.items.size(),
                    progress_verbosity(options.engine.quiet, options.engine.json), Progress::Unit::kCount);
  const std::vector<eval::ChoiceScore> scores = eval::finish<eval::ChoiceScore>(
      state, work.items.size(), eval::choice_score_from_json, [&](std::size_t i) {
        progress.update(i);
        return scorer.score(work.requests[i], [] { return !interrupted_or_unread(); });
      });
  progress.update(work.items.size());
  progress.end();
  const std::size_t resumed = std::min(state.found().size(), scores.size());
  print(options, work, eval::choice_metrics(work.items, scores), engine, stepped, resumed, energy);
}

}  // namespace sluice::app
