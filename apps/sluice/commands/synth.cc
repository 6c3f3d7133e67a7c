// `sluice synth`: makes a model of any published shape from random weights, for measuring.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "base/setting.h"
#include "command.h"
#include "flags/common_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "model/gguf_mix.h"
#include "model/synth/synth.h"
#include "model/synth/synth_gguf.h"
#include "report/progress.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "tokenizer/export/gguf_tokenizer_keys.h"
#include "tokenizer/export/tokenizer_directory.h"

namespace sluice::app {
namespace {
namespace synth_command {

struct Options {
  CommonFlags common;
  std::string config, output, dtype = "bf16", shard_size = "5GB", format, tokenizer;
  std::uint32_t layers = 0, experts = 0;  // 0: those of the config
  double embedding_scale = 1, embedding_common = 0;
};

unsigned threads_of(const Options& options) {
  return options.common.threads != 0 ? static_cast<unsigned>(options.common.threads) : usable_cpus();
}

tokenizer::TokenId rows_of(const model::SynthPlan& plan) {
  return static_cast<tokenizer::TokenId>(plan.config.vocab);
}

void write_gguf(const Options& options, const model::SynthOptions& synth) {
  const model::GgufMix mix(options.format);
  const model::SynthPlan plan = model::plan_synth(options.config, synth);
  model::GgufTokenizerKeys tokenizer;
  if (!options.tokenizer.empty())
    tokenizer = tokenizer::gguf_tokenizer_keys(options.tokenizer, rows_of(plan));
  const model::GgufSynthPlan gguf = model::plan_gguf_synth(plan, mix, tokenizer);
  if (options.common.json || !options.common.quiet) check_output_device();
  ThreadPool threads(threads_of(options));
  {
    Progress progress("synth", gguf.layout.file_bytes,
                      progress_verbosity(options.common.quiet, options.common.json));
    model::write_gguf_synth(gguf, options.output, threads, [&](Bytes done) {
      progress.update(done);
      return !interrupted();
    });
  }
  if (options.common.json) {
    std::cout << Json{{"path", options.output},
                      {"tensors", gguf.tensors.size()},
                      {"format", options.format},
                      {"bytes", gguf.layout.file_bytes},
                      {"seed", plan.seed}}
                     .dump()
              << "\n";
  } else if (!options.common.quiet) {
    print_wrapped(fmt::format("{}: {} tensors, {}, seed {}", options.output, gguf.tensors.size(),
                              format_bytes(gguf.layout.file_bytes), plan.seed));
  }
}

void synthesise(const Options& options) {
  model::SynthOptions synth;
  synth.seed = options.common.seed.value_or(0);
  if (options.layers != 0) synth.layers = options.layers;
  if (options.experts != 0) synth.experts = options.experts;
  synth.embedding_scale = options.embedding_scale;
  synth.embedding_common = options.embedding_common;
  synth.shard_bytes = parse_size(options.shard_size, Setting::kShardSize);
  if (synth.shard_bytes == 0)
    throw Error(ErrorKind::kUsage, "a shard has no room for a tensor")
        .in(Setting::kShardSize)
        .expected("1 or more bytes")
        .found("\"" + options.shard_size + "\"")
        .fix("give a size such as 4GiB, or leave the flag out");
  if (!(synth.embedding_scale >= 1e-3 && synth.embedding_scale <= 1e6))
    throw Error(ErrorKind::kUsage, "the scale of the embeddings is out of range for BF16 arithmetic")
        .in(Setting::kEmbeddingScale)
        .expected("a number from 0.001 to 1000000")
        .found(fmt::format("{}", synth.embedding_scale))
        .fix("leave the flag out for 1");
  if (!(synth.embedding_common >= 0 && synth.embedding_common < 1))
    throw Error(ErrorKind::kUsage, "the common share leaves tokens no part of their own")
        .in(Setting::kEmbeddingCommon)
        .expected("a share from 0 to below 1")
        .found(fmt::format("{}", synth.embedding_common))
        .fix("leave the flag out for 0");
  if (!options.format.empty()) return write_gguf(options, synth);
  check_new_directory(options.output);
  model::SynthPlan plan = model::plan_synth(options.config, synth);
  if (!options.tokenizer.empty()) {
    tokenizer::load_tokenizer_for(options.tokenizer, rows_of(plan));
    plan.tokenizer = tokenizer::read_tokenizer_files(options.tokenizer);
  }
  if (options.common.json || !options.common.quiet) check_output_device();
  ThreadPool threads(threads_of(options));
  {
    Progress progress("synth", plan.bytes, progress_verbosity(options.common.quiet, options.common.json));
    model::write_synth(plan, options.output, threads, [&](Bytes done) {
      progress.update(done);
      return !interrupted();
    });
  }
  if (options.common.json) {
    std::cout << Json{{"path", options.output},
                      {"tensors", plan.tensors.size()},
                      {"shards", plan.shards.size()},
                      {"bytes", plan.bytes},
                      {"seed", plan.seed}}
                     .dump()
              << "\n";
  } else if (!options.common.quiet) {
    print_wrapped(fmt::format("{}: {} tensors, {} in {} shards, seed {}", options.output, plan.tensors.size(),
                              format_bytes(plan.bytes), plan.shards.size(), plan.seed));
  }
}

}  // namespace synth_command
}  // namespace

void add_synth(Command& app) {
  using namespace synth_command;
  Command* command =
      app.add_command("synth", "Write a model with random weights at the shapes of a config.json");
  auto options = std::make_shared<Options>();
  command->add_argument("CONFIG", &options->config, "config.json of a published model")->required();
  command
      ->add_option(Setting::kOutput, &options->output,
                   "The directory to make, or the GGUF file; it must not exist")
      ->required();
  command->add_option(Setting::kLayers, &options->layers, "Layers instead of the config's")
      ->check(whole_number(Setting::kLayers, 1, 1 << 20));
  command
      ->add_option(Setting::kExperts, &options->experts, "Routed experts per layer instead of the config's")
      ->check(whole_number(Setting::kExperts, 1, 1 << 20));
  command
      ->add_option(Setting::kEmbeddingScale, &options->embedding_scale,
                   "Input embeddings this many times as large: fewer experts repeat from token to token")
      ->show_default();
  command
      ->add_option(Setting::kEmbeddingCommon, &options->embedding_common,
                   "Share of the input embeddings' variance that all tokens have in common: more experts "
                   "repeat from token to token")
      ->show_default();
  command->add_option(Setting::kDtype, &options->dtype, "Element type, whatever the config says: bf16")
      ->one_of({"bf16"})
      ->show_default();
  command->add_option(
      Setting::kFormat, &options->format,
      "Write a GGUF file, with matrices in this type (q8_0, q4_k, mxfp4, ...) or mix of types "
      "(q4_k_m, q5_k_m, mxfp4_moe)");
  command->add_option(Setting::kTokenizer, &options->tokenizer,
                      "A directory with a tokenizer, which the model takes with its chat template; "
                      "default: none, so that prompts are token ids");
  command->add_option(Setting::kShardSize, &options->shard_size, "Most tensor bytes in one file")
      ->show_default();
  options->common.seed = 0;
  add_common_flags(*command, options->common,
                   {.threads = "Threads that make weights; 0: all usable CPUs",
                    .seed = "Same seed, same bytes; default: 0",
                    .json = "Print a summary as JSON",
                    .quiet = "Print nothing but errors"});
  command->footer(
      "Weights look like trained ones to a compressor and to a router; the text is noise.\n"
      "Example:\n"
      "  sluice synth qwen1.5-moe/config.json -o qwen-synth --layers 4\n"
      "  sluice run qwen-synth --tokens 1,2,3 -n 16 --ignore-eos --memory 2GiB\n"
      "  sluice synth qwen3-moe/config.json --format q4_k_m -o qwen.gguf --layers 8 --tokenizer qwen3-moe\n"
      "  sluice run qwen.gguf -p \"Once upon a time\" -n 16 --memory 4GiB");
  command->callback([options] { synthesise(*options); });
}

}  // namespace sluice::app
