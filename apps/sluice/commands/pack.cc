// `sluice pack`: turns a model directory or a GGUF file into a packed store.
#include "store/pack/pack.h"
#include "base/duration.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/unknown_name.h"
#include "codec/exponents/exponent_codec.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/exponents/shards.h"
#include "command.h"
#include "flags/common_flags.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/slice_bits_flag.h"
#include "flags/work_memory.h"
#include "model/pack_plan.h"
#include "report/progress.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/gguf.h"
#include "store/source/open_checkpoint.h"
#include "store/source/source_directory.h"
#include "store/source/source_weights.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::app {
namespace {
namespace pack_command {

struct Options {
  CommonFlags common;
  std::string model, output, codec;  // an empty codec means the default
  std::optional<std::int64_t> chunks;
  std::optional<int> level;
  std::vector<std::string> exclude;
  std::string slices, dense{"exact"};
};

std::vector<std::string> codec_names() {
  std::vector<std::string> names = {std::string(codec::kNativeCodec)};
  for (const codec::ExponentCodecEntry& entry : codec::exponent_codecs()) names.emplace_back(entry.name);
  return names;
}

std::string codec_levels() {
  std::string text;
  for (const codec::ExponentCodecEntry& entry : codec::exponent_codecs()) {
    if (entry.min_level == entry.max_level) continue;
    text += fmt::format("{}{} {} to {}, default {}", text.empty() ? "" : "; ", entry.name, entry.min_level,
                        entry.max_level, entry.default_level);
  }
  return text;
}

// A store with an unknown codec is unsupported; a flag with one is wrong usage.
void check_codec(const std::string& codec, std::optional<int> level) {
  if (!codec::is_codec(codec)) throw unknown_name(Setting::kCodec, codec, codec_names(), "unknown codec");
  if (codec != codec::kNativeCodec) {
    codec::make_exponent_codec(codec, level);
  } else if (level) {
    throw Error(ErrorKind::kUsage, "codec native has no levels")
        .in(Setting::kLevel)
        .expected("no level, or a codec that has some: " + codec_levels())
        .found(std::to_string(*level))
        .fix("leave " + Setting::kLevel + " out, or choose such a codec");
  }
}

// Opens what is to be packed. Files that are left out are no part of it.
std::unique_ptr<store::Checkpoint> open_source(const Options& options) {
  if (store::looks_like_gguf(options.model)) {
    store::check_no_patterns(options.exclude);
    return store::open_checkpoint(options.model);
  }
  auto checkpoint = store::open_directory(options.model, options.exclude);
  if (!checkpoint->find_file("config.json") &&
      std::filesystem::is_regular_file(options.model + "/config.json"))
    throw Error(ErrorKind::kUsage, "a store without the model's config.json could not be run")
        .in(Setting::kExclude)
        .expected("patterns that keep config.json")
        .found("patterns that leave it out")
        .fix("let them keep config.json");
  return checkpoint;
}

// What a codec would not do: it compresses BF16 words, which some models in blocks do not have.
void check_codec_has_use(const Options& options, const store::Checkpoint& checkpoint) {
  const bool named = (!options.codec.empty() && options.codec != "none") || options.level || options.chunks;
  if (!named) return;
  const store::TensorInfo* in_blocks = nullptr;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.format != nullptr && !tensor.format->words)
      in_blocks = &tensor;
    else if (tensor.dtype == DType::kBF16)
      return;
  }
  if (in_blocks == nullptr) return;
  throw Error(ErrorKind::kUsage, "a codec would compress nothing of this model")
      .in(!options.codec.empty() ? Setting::kCodec
          : options.level        ? Setting::kLevel
                                 : Setting::kChunks)
      .expected("words of BF16, which alone are compressed")
      .found(fmt::format("none: tensor \"{}\" is {}", shown_text(in_blocks->name), in_blocks->format->name))
      .fix("leave it out: the matrices are stored as they are");
}

store::DenseRounding parse_dense(const std::string& text, bool sliced) {
  if (text == "exact") return store::DenseRounding::kExact;
  if (text != "int8")
    throw unknown_name(Setting::kDense, text, {"exact", "int8"}, "unknown form of dense weights");
  if (!sliced)
    throw Error(ErrorKind::kUsage, "dense weights of 8 bits belong to a store with sliced experts")
        .in(Setting::kDense)
        .expected(Setting::kSlices + " beside int8, or exact")
        .found("int8 alone")
        .fix("give " + Setting::kSlices + ", too, or leave " + Setting::kDense + " out");
  return store::DenseRounding::kInt8;
}

// The store is still in `directory`, and is told by the name that it will have.
Error with_final_name(Error error, const std::string& directory, const std::string& store) {
  if (!error.where().starts_with(directory)) return error;
  const std::string path = store + error.where().substr(directory.size());
  return error.offset() ? error.in(path, *error.offset()) : error.in(path);
}

// What the store in `directory` says of its tokenizer afterwards. One that this program cannot read is no
// failure: the model runs on token ids, and who asks for text is told why there is none.
std::string_view compile_tokenizer(const std::string& directory, const Options& options) {
  try {
    const std::unique_ptr<store::Checkpoint> checkpoint = store::open_checkpoint(directory);
    return tokenizer::compile_tokenizer_of(*checkpoint, interrupted) ? "compiled" : "none";
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) throw;
    if (error.kind() == ErrorKind::kInterrupted) return "not compiled";  // the pack asks next, and says so
    if (!options.common.quiet)
      print_warning("the tokenizer is not compiled: {}",
                    shown_text(with_final_name(error, directory, options.output).what()));
    return "not compiled";
  }
}

void pack(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  store::check_not_packed(options.model);
  store::PackOptions pack;
  pack.codec = options.codec.empty() ? std::string(codec::kNativeCodec) : options.codec;
  pack.level = options.level;
  if (options.chunks) pack.chunks = codec::check_chunk_count(*options.chunks, Setting::kChunks);
  check_codec(pack.codec, pack.level);  // checked before the model is read
  if (!options.slices.empty()) pack.slices = slice_bits_flag(options.slices);
  pack.dense = parse_dense(options.dense, pack.slices.has_value());
  if (options.chunks && pack.codec == "none")
    throw Error(ErrorKind::kUsage, "codec none has no exponent chunks")
        .in(Setting::kChunks)
        .expected("a codec that compresses exponents")
        .found(Setting::kCodec + " none")
        .fix("leave " + Setting::kChunks + " out");
  pack.exclude = options.exclude;
  pack.threads = static_cast<unsigned>(options.common.threads);
  pack.isa = parse_isa(options.common.isa);
  WorkMemory(options.common.memory, "pack");  // checked before the model is read
  pack.interrupted = interrupted;

  check_model_name(options.model);
  if (!store::looks_like_gguf(options.model)) store::check_patterns(options.model, options.exclude);
  check_new_directory(options.output);
  const auto checkpoint = open_source(options);
  check_codec_has_use(options, *checkpoint);
  if (options.common.json || !options.common.quiet) check_output_device();
  const store::PackPlan plan = model::pack_plan(*checkpoint);
  const WorkMemory memory(options.common.memory, "pack");  // the model's tables exist by now
  pack.memory = memory.in_progress();
  pack.check_memory = [&](Bytes least) { memory.check(least); };
  store::PackResult result;
  std::string_view tokenizer;
  pack.add_sidecars = [&](const std::string& directory) {
    tokenizer = compile_tokenizer(directory, options);
  };
  {
    ProgressOfTotal progress("pack", progress_verbosity(options.common.quiet, options.common.json));
    pack.on_progress = [&](const store::PackProgress& now) { progress.update(now.done, now.total); };
    result = store::pack(options.model, options.output, plan, pack);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double ratio = result.source_bytes == 0 ? 1.0
                                                : static_cast<double>(result.stored_bytes) /
                                                      static_cast<double>(result.source_bytes);
  if (options.common.json) {
    std::cout << Json{{"path", options.output},
                      {"family", store::family_name(result.family)},
                      {"codec", result.codec},
                      {"slices", pack.slices ? Json(options.slices) : Json()},
                      {"experts", result.experts},
                      {"tensors", result.tensors},
                      {"tokenizer", tokenizer},
                      {"source_bytes", result.source_bytes},
                      {"stored_bytes", result.stored_bytes},
                      {"resumed_bytes", result.resumed_bytes},
                      {"ratio", ratio},
                      {"seconds", seconds}}
                     .dump()
              << "\n";
  } else if (!options.common.quiet) {
    print_wrapped(fmt::format(
        "{}: {} experts and {} tensors, {} stored as {} ({:.1f} %) in {}{}", options.output, result.experts,
        result.tensors, format_bytes(result.source_bytes), format_bytes(result.stored_bytes), 100 * ratio,
        format_duration(seconds),
        result.resumed_bytes == 0 ? ""
                                  : fmt::format(", {} of them earlier", format_bytes(result.resumed_bytes))));
  }
}

}  // namespace pack_command
}  // namespace

void add_pack(Command& app) {
  using namespace pack_command;
  Command* command = app.add_command("pack", "Pack a model into a store that is fetched expert by expert");
  auto options = std::make_shared<Options>();
  add_model_argument(*command, "MODEL", options->model, options->common,
                     "Hugging Face directory, GGUF file (the first of its parts), or a name that sluice list "
                     "shows");
  command->add_option(Setting::kOutput, &options->output, "The store to make, NAME.sluice; must not exist")
      ->required();
  command->add_option(Setting::kCodec, &options->codec,
                      fmt::format("How exponents of BF16 words are compressed: {}; default: {}. Matrices in "
                                  "blocks are stored as they are",
                                  fmt::join(codec_names(), ", "), codec::kNativeCodec));
  command
      ->add_option(Setting::kChunks, &options->chunks,
                   fmt::format("Exponent chunks of an expert's matrix, 1 to 256; default: {}",
                               store::PackOptions().chunks))
      ->check(whole_number(Setting::kChunks, 1, codec::kMaxChunks));
  command->add_option(Setting::kLevel, &options->level,
                      fmt::format("Level of the codec: {}", codec_levels()));
  command->add_option(Setting::kSlices, &options->slices,
                      fmt::format("Round experts to codes of this many bits, the higher of them fetched by "
                                  "themselves (SliceMoE): {}. "
                                  "Such a store cannot be unpacked",
                                  fmt::join(slice_bits_names(), ", ")));
  command
      ->add_option(Setting::kDense, &options->dense,
                   "With " + Setting::kSlices + ": dense weights exact, or their large matrices in int8")
      ->show_default();
  command->add_option(Setting::kExclude, &options->exclude,
                      "Leave out files or directories that match this glob (repeatable)");
  options->common.memory = "1GiB";
  add_common_flags(
      *command, options->common,
      {.memory = "Memory to work with, at least 64MiB; pages of the page cache that written files "
                 "fill until they are on the disk come on top",
       .threads = "Threads that compress; 0: one for every CPU",
       .isa = "Instruction set that splits words: auto, scalar, avx2, avx512, avx512_vbmi2, "
              "avx512_bf16, amx, neon",
       .json = "Print one JSON object at the end",
       .quiet = "Print nothing but errors"});
  command->footer(
      "An interrupted pack leaves NAME.sluice.partial; the same command goes on where it stopped.\n"
      "An input embedding that is not the output head, too, is stored as it is: its rows are read one by "
      "one while the model runs, and take no memory.\n"
      "Examples:\n"
      "  sluice pack Qwen1.5-MoE-A2.7B -o qwen.sluice\n"
      "  sluice pack Qwen3-30B-A3B-Q4_K_M.gguf -o qwen3.sluice\n"
      "  sluice pack Mixtral-8x7B -o mixtral.sluice --exclude 'consolidated*' --codec lz4\n"
      "  sluice pack DeepSeek-V2-Lite -o lite84.sluice --slices 8/4 --dense int8");
  command->callback([options] { pack(*options); });
}

}  // namespace sluice::app
