// `sluice forward`: computes the logits of every position of a given sequence.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "command.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "engine/session/sequence.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/device_report.h"
#include "report/memory_report.h"
#include "report/run_json.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "setup/token_input.h"
#include "store/checkpoint.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "tokenizer/text/text_check.h"

namespace sluice::app {
namespace {
namespace forward_command {

// Tokens whose logits are made in one pass over the output head.
constexpr std::size_t kLogitRows = 32;

struct Options {
  EngineFlags engine;
  std::string tokens, encoder_tokens, out;
  const Flag* encoder_given = nullptr;
  std::optional<std::int64_t> prefill;
};

// The encoder's input; empty for a decoder alone.
std::vector<tokenizer::TokenId> encoder_input(const Options& options, const model::ModelConfig& config) {
  const bool given = options.encoder_given->given();
  if (given && !config.has_encoder())
    throw Error(ErrorKind::kUsage, "this model has no encoder")
        .in(Setting::kEncoderTokens)
        .expected("an encoder-decoder, such as switch_transformers")
        .found(config.model_type)
        .fix("leave " + Setting::kEncoderTokens + " out");
  if (!given && config.has_encoder())
    throw Error(ErrorKind::kUsage, "this model needs its encoder's input too")
        .in(Setting::kEncoderTokens)
        .expected("token ids")
        .found("none")
        .fix("give " + Setting::kEncoderTokens +
             " 1,2,3, and the decoder's tokens, start token included, as " + Setting::kTokens);
  return given ? parse_token_list(options.encoder_tokens, Setting::kEncoderTokens)
               : std::vector<tokenizer::TokenId>();
}

// The header of .npy v1.0 for a float32 matrix in C order; its length is a multiple of 64 bytes.
std::string npy_header(std::size_t rows, std::size_t cols) {
  std::string dict =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  const std::size_t total = round_up(10 + dict.size() + 1, 64);
  dict.append(total - 10 - dict.size() - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 255);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

// The output under a temporary name until it is complete.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : target_(target),
        path_(fmt::format("{}.tmp-{}-0", target, ::getpid())),
        file_(OutputFile::create(path_)) {}
  ~TemporaryFile() {
    if (!done_) ::unlink(path_.c_str());
  }
  OutputFile& file() { return file_; }
  void finish() {
    file_.close();
    if (std::rename(path_.c_str(), target_.c_str()) != 0) throw io_error("rename", target_, errno);
    done_ = true;
  }

 private:
  std::string target_, path_;
  OutputFile file_;
  bool done_ = false;
};

void forward(const Options& options) {
  const EngineFlags& flags = options.engine;
  const std::vector<tokenizer::TokenId> tokens = parse_token_list(options.tokens, Setting::kTokens);
  engine::EngineOptions settings = engine_options(flags);
  check_output_path(options.out);
  const OpenModel open = open_model(flags.model, WithTokenizer::kNo, flags);
  const std::vector<tokenizer::TokenId> encoder_tokens = encoder_input(options, open.model.config);
  const std::size_t context = context_tokens(flags, open.model);
  for (const auto& [list, setting] :
       {std::pair(&tokens, Setting::kTokens), std::pair(&encoder_tokens, Setting::kEncoderTokens)}) {
    tokenizer::check_ids(*list, open.model.config.vocab, setting, ErrorKind::kUsage);
    if (list->size() > context)
      throw Error(ErrorKind::kInvalid, "there are more tokens than the context holds")
          .in(setting)
          .expected(fmt::format("at most {}", context))
          .found(std::to_string(list->size()))
          .fix(flags.context != 0 ? "give fewer tokens, or raise " + Setting::kContext
                                  : "give fewer tokens: the model takes no more");
  }
  if (flags.json) check_output();
  settings.positions = tokens.size();
  settings.encoder_positions = encoder_tokens.size();
  engine::Engine engine(*open.checkpoint, open.model, engine::resolve(settings, *open.checkpoint, open.model),
                        std::min(kLogitRows, tokens.size()));
  write_start_warnings(engine.report());
  TemporaryFile out(options.out);
  out.file().write(npy_header(tokens.size(), open.model.config.vocab));
  const std::unique_ptr<engine::Sequence> sequence = engine.new_sequence();
  if (!encoder_tokens.empty() && !engine.encode(*sequence, encoder_tokens, [] { return !interrupted(); }))
    throw interrupted_error("no logits are written");
  const auto go_on = [] {
    if (interrupted()) throw interrupted_error("no logits are written");
    return true;
  };
  const auto write = [&](std::span<const float> logits) {
    go_on();
    out.file().write(std::as_bytes(logits));
  };
  const bool stepped = options.prefill || engine.report().policies.decodes_otherwise();
  const std::size_t prompt =
      stepped ? std::min(tokens.size(), static_cast<std::size_t>(options.prefill.value_or(kPromptTokens)))
              : tokens.size();
  if (prompt > 0)
    engine.prefill(
        *sequence, std::span(tokens).first(prompt),
        {[](std::size_t) { return true; }, [&](std::size_t, std::span<const float> row) { write(row); }},
        go_on);
  for (const tokenizer::TokenId token : std::span(tokens).subspan(prompt))
    write(engine.decode(*sequence, token));
  out.finish();
  const engine::RunReport run = engine.report();
  if (flags.json) {
    Json json{{"out", options.out},           {"shape", {tokens.size(), open.model.config.vocab}},
              {"memory", memory_json(run)},   {"io", io_json(run)},
              {"experts", experts_json(run)}, {"decisions", fmt::format("{:016x}", run.decision_hash())}};
    add_device(json, run);
    std::cout << json.dump() << '\n';
  } else if (!flags.quiet) {
    print_message("wrote {}: float32 [{}, {}]", options.out, tokens.size(), open.model.config.vocab);
    if (const std::string device = device_text(run); !device.empty()) print_message("device: {}", device);
  }
}

}  // namespace forward_command
}  // namespace

void add_forward(Command& app) {
  using namespace forward_command;
  Command* command = app.add_command("forward", "Write the logits of every position of a token sequence");
  auto options = std::make_shared<Options>();
  command->add_option(Setting::kTokens, &options->tokens, "Token ids, taken verbatim: 1,2,3")->required();
  options->encoder_given =
      command->add_option(Setting::kEncoderTokens, &options->encoder_tokens,
                          "For an encoder-decoder: the encoder's token ids; " + Setting::kTokens +
                              " "
                              "are then the decoder's, start token included");
  command->add_option(Setting::kOut, &options->out, "File to write: .npy, float32 [tokens, vocabulary]")
      ->required();
  command
      ->add_option(Setting::kPrefill, &options->prefill,
                   "Tokens that are a prompt; the others are decoded one by one; default: all, but 64 where "
                   "decoding changes precision or routing")
      ->check(whole_number(Setting::kPrefill, 0, std::uint64_t{1} << 31));
  add_engine_flags(*command, options->engine,
                   {.seed = kSeedOfCaches,
                    .router = kRouterOfSteps,
                    .context = "Most tokens (of " + Setting::kTokens + " and of " + Setting::kEncoderTokens +
                               "); default: the model's "
                               "maximum",
                    .devices = true});
  command->footer(
      "Example:\n  sluice forward models/fable-moe-18m --tokens 1,2,3 --out logits.npy --math f32");
  command->callback([options] { forward(*options); });
}

}  // namespace sluice::app
