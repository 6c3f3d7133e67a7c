// `sluice eval`: perplexity of a text.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "command.h"
#include "engine/evaluate.h"
#include "engine_flags.h"
#include "number_range.h"
#include "open_tokenizer.h"
#include "progress.h"
#include "run_report.h"

namespace sluice::app {
namespace {

constexpr std::size_t kLogitRows = 64;

struct Options {
  EngineFlags engine;
  std::string file;
  std::int64_t window = 512;
};

void evaluate(const Options& options) {
  const EngineFlags& flags = options.engine;
  engine_options(flags, 1);
  if (flags.context != 0)
    throw Error(ErrorKind::kUsage, "the context of eval is its window").in("-c").fix("use --ctx N");
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired);
  if (open.model.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "an encoder-decoder has no perplexity of a text by itself")
        .in(flags.model)
        .expected("a decoder without an encoder")
        .found(open.model.config.model_type)
        .fix("score an answer to an input by `sluice forward --encoder-tokens`");
  const std::string text = read_input_text(options.file);
  const std::vector<model::TokenId> tokens =
      encode_file(*open.tokenizer, text, options.file, model::AddSpecial::kNo, flags);
  if (tokens.size() < 2)
    throw Error(ErrorKind::kInvalid, "the text is too short to score")
        .in(options.file)
        .expected("at least 2 tokens")
        .found(std::to_string(tokens.size()))
        .fix("give a longer text");
  const std::size_t window = static_cast<std::size_t>(options.window);
  if (window > open.model.config.max_positions)
    throw Error(ErrorKind::kUsage, "windows are longer than the model's context")
        .in("--ctx")
        .expected(fmt::format("2 to {}", open.model.config.max_positions))
        .found(std::to_string(window))
        .fix("give a smaller --ctx");
  const std::size_t positions = std::min(window, tokens.size());
  engine::Engine engine(*open.checkpoint, open.model, engine_options(flags, positions),
                        std::min(kLogitRows, positions));
  Progress progress("eval: tokens", tokens.size(),
                    flags.quiet || flags.json ? Verbosity::kQuiet : Verbosity::kNormal,
                    Progress::Unit::kCount);
  const engine::Evaluation result = engine::evaluate(engine, tokens, window, [&](std::size_t done) {
    progress.update(done);
    return !interrupted();
  });
  if (flags.json) {
    std::cout << Json{{"tokens", result.tokens},
                      {"predicted", result.predicted},
                      {"nll", result.nll},
                      {"perplexity", result.perplexity()},
                      {"bits_per_byte", result.bits_per_byte(text.size())},
                      {"memory", memory_json(engine)},
                      {"io", io_json(engine)},
                      {"experts", experts_json(engine)}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << fmt::format("perplexity {:.4f}  ({} tokens, {} predicted, nll {:.3f}, {:.5f} bits a byte)\n",
                           result.perplexity(), result.tokens, result.predicted, result.nll,
                           result.bits_per_byte(text.size()));
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Perplexity of a text");
  auto options = std::make_shared<Options>();
  add_engine_flags(*command, options->engine,
                   {.seed = kSeedOfCaches,
                    .router = kRouterOfPrompts,
                    .context = "Refused: the context of eval is its window, --ctx"});
  command->add_option("-f,--file", options->file, "Text to score; - is standard input")->required();
  command->add_option("--ctx", options->window, "Tokens of a window; at least 2")
      ->capture_default_str()
      ->check(whole_number("--ctx", 2, 1 << 24));
  command->footer("Example:\n  sluice eval models/fable-moe-18m -f models/fable-moe-18m/eval.txt");
  command->callback([options] { evaluate(*options); });
}

}  // namespace sluice::app
