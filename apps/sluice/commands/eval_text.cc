// `sluice eval` of a text: perplexity of a text, and the distance from a reference model.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "commands/eval_command.h"
#include "engine/engine.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "eval/identity.h"
#include "eval/split_budget.h"
#include "eval/state.h"
#include "eval/tasks/data_file.h"
#include "eval/text_score.h"
#include "eval/windows.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/device_report.h"
#include "report/energy_report.h"
#include "report/memory_report.h"
#include "report/progress.h"
#include "report/run_json.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace eval_text_command {

constexpr std::size_t kLogitRows = 64;
constexpr std::int64_t kDefaultWindow = 512;
constexpr Bytes kMostTextBytes = 256 * kMiB;

struct Text {
  std::string bytes;
  std::vector<tokenizer::TokenId> tokens;
};

Text read_text(const EvalOptions& options, const OpenModel& open) {
  Text text;
  text.bytes = options.file.ends_with(".zst") ? eval::read_data_file(options.file, kMostTextBytes)
                                              : read_input_text(options.file);
  text.tokens =
      encode_file(*open.tokenizer, text.bytes, options.file, tokenizer::AddSpecial::kNo, options.engine);
  if (text.tokens.size() < 2)
    throw Error(ErrorKind::kInvalid, "the text is too short to score")
        .in(options.file)
        .expected("at least 2 tokens")
        .found(std::to_string(text.tokens.size()))
        .fix("give a longer text");
  return text;
}

// Scored tokens that a step predicts when the first `prompt` tokens of a window are its prompt.
std::size_t stepped_tokens(const std::vector<eval::Window>& windows, std::size_t prompt) {
  std::size_t stepped = 0;
  for (const eval::Window& window : windows)
    for (std::size_t t = window.scored; t < window.end; ++t)  // predicted by the token before it
      stepped += t - 1 - window.begin >= prompt;
  return stepped;
}

struct Cut {
  std::size_t length = 0, stride = 0;
  std::vector<eval::Window> windows;
  std::size_t predicted = 0;
};

void check_window(std::size_t window, const model::Model& model) {
  if (window > model.config.max_positions)
    throw Error(ErrorKind::kUsage, "windows are longer than the model's context")
        .in(Setting::kCtx)
        .expected(fmt::format("2 to {}", model.config.max_positions))
        .found(std::to_string(window))
        .fix("give a smaller " + Setting::kCtx);
}

Cut cut(const EvalOptions& options, const model::Model& model, std::size_t tokens) {
  Cut cut;
  cut.length = static_cast<std::size_t>(options.window != 0 ? options.window : kDefaultWindow);
  cut.stride = options.stride != 0 ? static_cast<std::size_t>(options.stride) : cut.length;
  check_window(cut.length, model);
  if (cut.stride > cut.length)
    throw Error(ErrorKind::kUsage, "windows would leave tokens out between them")
        .in(Setting::kStride)
        .expected(fmt::format("at most {}, {}", mark(Setting::kCtx), cut.length))
        .found(std::to_string(cut.stride))
        .fix("give a smaller " + Setting::kStride);
  cut.windows = eval::cut_windows(tokens, cut.length, cut.stride);
  for (const eval::Window& window : cut.windows) cut.predicted += window.end - window.scored;
  return cut;
}

Error other_vocabulary(const EvalOptions& options, const std::string& expected, const std::string& found) {
  return Error(ErrorKind::kInvalid, "the reference has another vocabulary than the model")
      .in(options.reference)
      .expected(expected)
      .found(found)
      .fix("compare models of the same tokenizer");
}

// Opens a reference that gives logits of the same tokens.
OpenModel open_reference(const EvalOptions& options, const OpenModel& open, const Text& text,
                         const Cut& cut) {
  OpenModel reference = open_model(options.reference, WithTokenizer::kIfThere, options.engine);
  check_decoder(reference.model, options.reference);
  if (reference.checkpoint->slices())
    throw Error(ErrorKind::kUnsupported, "a model in slices is rounded, so it cannot be an exact reference")
        .in(options.reference)
        .expected("a model directory, or a store of family raw or split")
        .found("a store of family sliced")
        .fix("give the model it was packed from");
  const std::size_t expected = open.model.config.vocab, found = reference.model.config.vocab;
  if (expected != found)
    throw other_vocabulary(options, fmt::format("{} tokens", expected), fmt::format("{} tokens", found));
  if (reference.tokenizer != nullptr) {
    const std::vector<tokenizer::TokenId> tokens = encode_file(*reference.tokenizer, text.bytes, options.file,
                                                               tokenizer::AddSpecial::kNo, options.engine);
    const auto [ours, theirs] =
        std::mismatch(text.tokens.begin(), text.tokens.end(), tokens.begin(), tokens.end());
    const auto shown = [](auto at, auto end) { return at == end ? "the end" : fmt::format("id {}", *at); };
    if (ours != text.tokens.end() || theirs != tokens.end())
      throw other_vocabulary(options,
                             fmt::format("{} as token {} of the text", shown(ours, text.tokens.end()),
                                         ours - text.tokens.begin()),
                             shown(theirs, tokens.end()));
    reference.tokenizer.reset();  // frees its memory
  }
  // Last, so that a model of another kind is not taken for one of the same kind with a short context.
  if (cut.length > reference.model.config.max_positions)
    throw Error(ErrorKind::kInvalid, "windows are longer than the reference's context")
        .in(options.reference)
        .expected(fmt::format("a context of {} tokens or more, as {} asks", cut.length, mark(Setting::kCtx)))
        .found(std::to_string(reference.model.config.max_positions))
        .fix("give a smaller " + Setting::kCtx + ", or another " + Setting::kReference);
  return reference;
}

// Makes the engine; a budget error says that `memory` is only a share, if it is.
std::unique_ptr<engine::Engine> make_engine(const OpenModel& open, engine::EngineOptions options,
                                            std::size_t positions, std::optional<Bytes> share,
                                            const char* whose) {
  options.positions = positions;
  if (share) options.memory = share;
  try {
    return std::make_unique<engine::Engine>(*open.checkpoint, open.model,
                                            engine::resolve(options, *open.checkpoint, open.model),
                                            std::min(kLogitRows, positions));
  } catch (const Error& error) {
    if (!share || error.kind() != ErrorKind::kBudget) throw;
    if (marked_setting(error.where()) == Setting::kCapacity)
      throw Error(error).fix("raise " + Setting::kMemory + ", lower " + Setting::kCapacity +
                             ", or leave the model more by " + Setting::kReferenceMemory);
    throw Error(ErrorKind::kBudget, fmt::format("the {}'s share of the memory budget is too small", whose))
        .in(Setting::kMemory)
        .expected(error.expected_text())
        .found(error.found_text())
        .fix("raise " + Setting::kMemory + ", or divide it otherwise by " + Setting::kReferenceMemory);
  }
}

std::string tokens_hash(const std::vector<tokenizer::TokenId>& tokens) {
  return hex64(xxh3(std::as_bytes(std::span(tokens))));
}

void print(const EvalOptions& options, const Text& text, const Cut& cut, const eval::TextScore& score,
           const engine::Engine& engine, const engine::Engine* reference, const eval::BudgetSplit& split,
           std::size_t stepped, std::size_t resumed, const EnergyReport& energy) {
  if (!options.engine.json) {
    std::cout << eval_row(
        "perplexity",
        fmt::format("{:.4f} ({} tokens, {} predicted, nll {:.3f}, {:.5f} bits a byte)", score.perplexity(),
                    text.tokens.size(), score.predicted, score.nll, score.bits_per_byte(text.bytes.size())));
    print_losses(engine, resumed, cut.windows.size());
    print_device(engine);
    if (!score.divergence) return;
    const eval::Quantiles& kl = *score.divergence;
    std::cout << eval_row("reference", fmt::format("{:.4f} (ratio {:.6f})", score.reference_perplexity(),
                                                   score.perplexity() / score.reference_perplexity()));
    print_wrapped(
        fmt::format("KL(reference || model), nats: mean {:.6f}, median {:.6f}; below {:.6f} in 90 % of "
                    "positions, {:.6f} in 95 %, {:.6f} in 99 %, {:.6f} in 99.9 %; at most {:.6f}",
                    kl.mean, kl.median, kl.p90, kl.p95, kl.p99, kl.p999, kl.most));
    print_wrapped(fmt::format("same top token: {:.3f} %", 100 * score.top_agreement));
    return;
  }
  Json json = {
      {"tokens", text.tokens.size()},
      {"predicted", score.predicted},
      {"nll", score.nll},
      {"perplexity", score.perplexity()},
      {"bits_per_byte", score.bits_per_byte(text.bytes.size())},
      {"ctx", cut.length},
      {"stride", cut.stride},
      {"prefill", prefill_json(prompt_tokens(options, engine))},
      {"stepped", stepped},
      {"resumed", resumed},
      {"memory", memory_json(engine.report(), reference == nullptr ? Engines::kOne : Engines::kSeveral)},
      {"io", io_json(engine.report())},
      {"experts", experts_json(engine.report())},
      {"energy_model", energy.json()}};
  add_device(json, engine.report());
  if (score.divergence) {
    const eval::Quantiles& kl = *score.divergence;
    json["divergence"] = {{"mean", kl.mean}, {"median", kl.median}, {"p90", kl.p90},  {"p95", kl.p95},
                          {"p99", kl.p99},   {"p999", kl.p999},     {"max", kl.most}, {"min", kl.least}};
    json["top_agreement"] = score.top_agreement;
    json["reference"] = {{"model", options.reference},
                         {"nll", score.reference_nll},
                         {"perplexity", score.reference_perplexity()},
                         {"memory", memory_json(reference->report(), Engines::kSeveral)},
                         {"io", io_json(reference->report())},
                         {"experts", experts_json(reference->report())}};
    json["budget"] = {{"whole", split.whole},
                      {"model", split.model},
                      {"reference", split.reference},
                      {"logits", split.logits},
                      {"results", split.results}};
  }
  std::cout << json.dump() << '\n';
}

}  // namespace eval_text_command
}  // namespace

void evaluate_text(const EvalOptions& options) {
  using namespace eval_text_command;
  const EngineFlags& flags = options.engine;
  engine::EngineOptions settings = engine_options(flags);
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  check_decoder(open.model, flags.model);
  const Text text = read_text(options, open);
  const Cut cut = eval_text_command::cut(options, open.model, text.tokens.size());
  const std::size_t positions = std::min(cut.length, text.tokens.size());

  check_output();
  OpenModel open_other;
  std::unique_ptr<engine::Engine> reference;
  eval::BudgetSplit split;
  std::optional<Bytes> share;
  if (!options.reference.empty()) {
    open_other = open_reference(options, open, text, cut);
    std::optional<Bytes> asked;
    if (!options.reference_memory.empty())
      asked = parse_size(options.reference_memory, Setting::kReferenceMemory);
    const Bytes whole = flags.memory.empty()
                            ? engine::default_budget()
                            : engine::checked_budget(parse_size(flags.memory, Setting::kMemory));
    split = eval::split_budget(whole, asked, open.model.config.vocab, positions, cut.predicted);
    share = split.model;
    reference = make_engine(open_other, engine_options(reference_flags(flags, options.reference)), positions,
                            split.reference, "reference");
  }
  const std::unique_ptr<engine::Engine> engine = make_engine(open, settings, positions, share, "model");
  check_engine(options, *engine);
  const std::size_t prompt = prompt_tokens(options, *engine);
  const std::size_t stepped = stepped_tokens(cut.windows, prompt);
  warn_of_few_steps(options, *engine, stepped, cut.predicted);
  const EnergyReport energy(*engine, options.machine, options.engine.json);
  if (energy.observer() != nullptr) engine->observe(energy.observer());

  Json identity = eval::identity_of(*engine);
  identity.update({{"task", "text"},
                   {"data", sha256_hex(std::as_bytes(std::span(text.bytes)))},
                   {"tokens", tokens_hash(text.tokens)},
                   {"ctx", cut.length},
                   {"stride", cut.stride},
                   {"prefill", prefill_json(prompt)},
                   {"reference", reference ? eval::identity_of(*reference).at("weights") : Json("")}});
  eval::State state(options.state, std::move(identity));

  eval::TextScorer scorer(*engine, prompt);
  if (reference) scorer.compare_with(*reference, split.rows);
  Progress progress("eval: tokens", text.tokens.size(),
                    progress_verbosity(options.engine.quiet, options.engine.json), Progress::Unit::kCount);
  const std::vector<eval::WindowScore> scores = eval::finish<eval::WindowScore>(
      state, cut.windows.size(),
      [&](const Json& json, const std::string& name) {
        return eval::window_score_from_json(json, reference ? eval::Compared::kYes : eval::Compared::kNo,
                                            name);
      },
      [&](std::size_t i) {
        std::size_t done = cut.windows[i].scored;
        return scorer.score(text.tokens, cut.windows[i], [&] {
          progress.update(std::min(done++, text.tokens.size()));
          return !interrupted_or_unread();
        });
      });
  progress.update(text.tokens.size());
  progress.end();
  const std::size_t resumed = std::min(state.found().size(), scores.size());
  print(options, text, cut, eval::sum(scores), *engine, reference.get(), split, stepped, resumed, energy);
}

}  // namespace sluice::app
