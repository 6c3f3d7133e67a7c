// `sluice inspect`: shows the parts of a model, and what packing makes of them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/stop_request.h"
#include "base/text_table.h"
#include "base/wrapped_text.h"
#include "codec/exponents/entropy.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/matrix_format.h"
#include "command.h"
#include "engine/session/sequence.h"
#include "flags/common_flags.h"
#include "flags/model_argument.h"
#include "model/architecture.h"
#include "report/gguf_report.h"
#include "report/progress.h"
#include "store/checkpoint.h"
#include "store/format.h"
#include "store/source/gguf.h"
#include "store/source/open_checkpoint.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace inspect_command {

using model::Model;
using model::Role;

struct Options {
  CommonFlags common;
  std::string path;
  bool tensors = false, full = false;
};

// ---- Pieces by class

enum class Class : std::uint8_t {
  kEmbedding,
  kAttention,
  kNorms,
  kRouter,
  kDenseMlp,
  kShared,
  kHead,
  kIgnored,
  kExperts
};
constexpr std::size_t kClasses = 9;
constexpr std::array<std::string_view, kClasses> kClassNames = {
    "embedding", "attention", "norms", "router", "dense_mlp", "shared", "head", "ignored", "experts"};

Class class_of(Role role) {
  switch (role) {
    case Role::kEmbedding:
      return Class::kEmbedding;
    case Role::kHead:
      return Class::kHead;
    case Role::kFinalNorm:
    case Role::kInputNorm:
    case Role::kPostAttentionNorm:
    case Role::kQNorm:
    case Role::kKNorm:
    case Role::kQDownNorm:
    case Role::kKvDownNorm:
    case Role::kCrossNorm:
    case Role::kEncoderFinalNorm:
      return Class::kNorms;
    case Role::kQ:
    case Role::kK:
    case Role::kV:
    case Role::kO:
    case Role::kQBias:
    case Role::kKBias:
    case Role::kVBias:
    case Role::kOBias:
    case Role::kSinks:
    case Role::kQDown:
    case Role::kQUp:
    case Role::kKvDown:
    case Role::kKvUp:
    case Role::kKeyUp:
    case Role::kValueUp:
    case Role::kRelativeBias:
    case Role::kCrossQ:
    case Role::kCrossK:
    case Role::kCrossV:
    case Role::kCrossO:
      return Class::kAttention;
    case Role::kRouter:
    case Role::kRouterBias:
      return Class::kRouter;
    case Role::kMlpGate:
    case Role::kMlpUp:
    case Role::kMlpDown:
      return Class::kDenseMlp;
    case Role::kSharedGate:
    case Role::kSharedUp:
    case Role::kSharedDown:
    case Role::kSharedExpertGate:
      return Class::kShared;
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertDown:
    case Role::kExpertGateBias:
    case Role::kExpertUpBias:
    case Role::kExpertDownBias:
      return Class::kExperts;
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(role)));
  return Class::kIgnored;
}

using PieceVisitor = std::function<void(Class, const store::StoredPiece&)>;

// Visits every piece of the checkpoint once, in its stored form.
void visit_pieces(const store::Checkpoint& checkpoint, const Model& model, const PieceVisitor& visit) {
  const auto whole = [&](Class kind, const std::string& name) {
    for (const store::Piece& piece : checkpoint.pieces_of(name)) visit(kind, checkpoint.locate(piece));
  };
  for (const model::TensorSpec& spec : model.dense) whole(class_of(spec.role), spec.name);
  for (const std::string& name : model.ignored) whole(Class::kIgnored, name);
  for (const model::ExpertPieces& expert : model.experts) {
    for (const store::Piece& piece : expert.all()) visit(Class::kExperts, checkpoint.locate(piece));
  }
}

Bytes stored_bytes(const store::StoredPiece& piece) {
  Bytes bytes = 0;
  for (const store::StoredPlane& plane : piece.planes) bytes += plane.extent.length;
  for (const store::ExponentChunk& chunk : piece.exponents) bytes += chunk.extent.length;
  return bytes;
}

// ---- Sizes

struct Tally {
  std::uint64_t parameters = 0;
  std::uint64_t parts = 0;  // entries of the manifest: pieces and chunks
  Bytes source = 0;         // the tensors' own words
  Bytes stored = 0;
  void operator+=(const Tally& other) {
    parameters += other.parameters;
    parts += other.parts;
    source += other.source;
    stored += other.stored;
  }
};

struct Sizes {
  std::array<Tally, kClasses> by_class;
  Tally dense, experts;    // `stored` with padding and metadata
  Bytes msb = 0, lsb = 0;  // slices as stored
  const Tally& of(Class kind) const { return by_class[static_cast<std::size_t>(kind)]; }
};

// Adds what a store's files hold besides the pieces: padding, counted where it is, and the manifest and the
// kept headers, divided by the number of entries. The source's own headers are not counted, so a directory
// has ratio 1.
void add_overhead(const store::Checkpoint& checkpoint, const std::vector<bool>& holds_experts, Sizes& sizes) {
  Bytes expert_files = 0, dense_files = 0;
  for (std::size_t file = 0; file < holds_experts.size(); ++file) {
    const Bytes bytes = InputFile::open(checkpoint.weight_files()[file]).size();
    (holds_experts[file] ? expert_files : dense_files) += bytes;
  }
  Bytes metadata = 0;
  for (const std::string_view name : {store::kManifestName, store::kHeadersName}) {
    metadata += InputFile::open(checkpoint.path() + "/" + std::string(name)).size();
  }
  const std::uint64_t parts = sizes.dense.parts + sizes.experts.parts;
  const auto share =
      static_cast<Bytes>(static_cast<double>(metadata) * static_cast<double>(sizes.experts.parts) /
                         static_cast<double>(std::max<std::uint64_t>(parts, 1)));
  sizes.experts.stored = expert_files + share;
  sizes.dense.stored = dense_files + (metadata - share);
}

Sizes measure(const store::Checkpoint& checkpoint, const Model& model) {
  Sizes sizes;
  std::vector<bool> holds_experts(checkpoint.weight_files().size(), false);
  visit_pieces(checkpoint, model, [&](Class kind, const store::StoredPiece& piece) {
    Tally& tally = sizes.by_class[static_cast<std::size_t>(kind)];
    tally += {piece.elements, 1 + piece.exponents.size(), piece.elements * dtype_bytes(piece.dtype),
              stored_bytes(piece)};
    if (kind == Class::kExperts) holds_experts.at(piece.first().file) = true;
    if (piece.format != nullptr && piece.format->slices) {
      sizes.msb += piece.planes[0].extent.length;
      sizes.lsb += piece.planes[1].extent.length;
    }
  });
  for (std::size_t kind = 0; kind < kClasses; ++kind) {
    (kind == static_cast<std::size_t>(Class::kExperts) ? sizes.experts : sizes.dense) += sizes.by_class[kind];
  }
  if (checkpoint.packed()) add_overhead(checkpoint, holds_experts, sizes);
  return sizes;
}

std::optional<double> ratio(const Tally& tally) {
  if (tally.source == 0) return std::nullopt;
  return static_cast<double>(tally.stored) / static_cast<double>(tally.source);
}

// ---- Entropy of exponents

constexpr std::uint64_t kSampledWords = 64 << 20;  // per group; a smaller group is read whole
constexpr std::uint64_t kBlockWords = 128 << 10;   // read together from raw words

Bytes bytes_of_words(std::uint64_t words) { return codec::kFormatBf16.bytes({1, words}); }

// A run of BF16 words, or of exponents, that is read together.
struct Run {
  store::Extent extent;
  std::uint64_t words = 0;
  bool exponents = false, coded = false;
  codec::TileShape tiles;  // for exponents in tiles
};

void visit_runs(const store::StoredPiece& piece, const std::function<void(const Run&)>& visit) {
  if (piece.dtype != DType::kBF16) return;
  for (const store::ExponentChunk& chunk : piece.exponents) {
    Run run{chunk.extent, chunk.elements, true, chunk.coded, {}};
    if (piece.tiled()) {
      run.tiles = codec::tile_rows(piece.tiles(), chunk.first_element, chunk.elements).shape;
      run.words = run.tiles.rows * run.tiles.columns;
    }
    visit(run);
  }
  if (!piece.raw()) return;
  for (std::uint64_t first = 0; first < piece.elements; first += kBlockWords) {
    const std::uint64_t words = std::min(kBlockWords, piece.elements - first);
    visit({{piece.first().file, piece.first().offset + bytes_of_words(first), bytes_of_words(words)},
           words,
           false,
           false,
           {}});
  }
}

struct Entropy {
  std::optional<double> bits;  // empty: there are no BF16 words
  std::uint64_t words = 0, words_read = 0;
};

class ExponentReader {
 public:
  explicit ExponentReader(const store::Checkpoint& checkpoint) : decoder_(checkpoint.codec(), best_isa()) {
    for (const std::string& path : checkpoint.weight_files()) files_.push_back(InputFile::open(path));
  }

  void add(const Run& run, codec::ExponentHistogram& histogram) {
    const InputFile& file = files_.at(run.extent.file);
    stored_.resize(run.extent.length);
    file.read_at(run.extent.offset, stored_);
    file.drop_cache(run.extent.offset, run.extent.length);
    if (!run.exponents) return histogram.add_words(stored_);
    plain_.resize(run.words);
    try {
      decoder_.exponents(run.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, stored_, run.tiles,
                         plain_);
    } catch (Error& error) {
      error.in(file.path(), run.extent.offset);
      throw;
    }
    histogram.add_exponents(plain_);
  }

 private:
  std::vector<InputFile> files_;
  const codec::PlaneDecoder decoder_;
  std::vector<std::byte> stored_, plain_;
};

// Measures the experts or everything else. Sampled: reads the runs under the points of an even grid over all
// words of the group, so that the probability of reading a run is proportional to its length.
Entropy measure_entropy(const store::Checkpoint& checkpoint, const Model& model, bool experts,
                        const Options& options) {
  const auto each_run = [&](const std::function<void(const Run&)>& visit) {
    visit_pieces(checkpoint, model, [&](Class kind, const store::StoredPiece& piece) {
      if ((kind == Class::kExperts) == experts) visit_runs(piece, visit);
    });
  };
  Entropy entropy;
  std::uint64_t longest = 1;
  each_run([&](const Run& run) {
    entropy.words += run.words;
    longest = std::max(longest, run.words);
  });
  if (entropy.words == 0) return entropy;

  const bool whole = options.full || entropy.words <= kSampledWords;
  const std::uint64_t points = std::clamp<std::uint64_t>(kSampledWords / longest, 16, 4096);
  const std::uint64_t stride = whole ? 1 : std::max<std::uint64_t>(entropy.words / points, 1);
  Progress progress(experts ? "experts" : "dense", bytes_of_words(whole ? entropy.words : kSampledWords),
                    progress_verbosity(!options.full || options.common.quiet, options.common.json));
  ExponentReader reader(checkpoint);
  codec::ExponentHistogram histogram;
  std::uint64_t at = 0, next = stride / 2;
  each_run([&](const Run& run) {
    const std::uint64_t end = at + run.words;
    if (next < end) {
      if (interrupted_or_unread()) throw interrupted_error();
      reader.add(run, histogram);
      entropy.words_read += run.words;
      next += (end - next + stride - 1) / stride * stride;  // the first point behind this run
      progress.update(bytes_of_words(entropy.words_read));
    }
    at = end;
  });
  entropy.bits = histogram.entropy_bits();
  return entropy;
}

// ---- Report

struct Report {
  Sizes sizes;
  Entropy dense_entropy, experts_entropy;
  std::uint64_t parameters = 0, active = 0;  // computed with; for one token
  Bytes kv_bytes_per_token = 0;              // BF16
};

Report make_report(const store::Checkpoint& checkpoint, const Model& model, const Options& options) {
  const model::ModelConfig& config = model.config;
  Report report;
  report.sizes = measure(checkpoint, model);
  report.experts_entropy = measure_entropy(checkpoint, model, true, options);
  report.dense_entropy = measure_entropy(checkpoint, model, false, options);
  const std::uint64_t dense = report.sizes.dense.parameters - report.sizes.of(Class::kIgnored).parameters;
  report.parameters = dense + report.sizes.experts.parameters;
  report.active = dense + config.expert_elements() * config.moe.top_k * config.sparse_layers();
  report.kv_bytes_per_token = Bytes{2} * engine::kv_elements_per_token(config);
  return report;
}

bool sampled(const Entropy& entropy) { return entropy.words_read < entropy.words; }

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json group_json(const Tally& tally, const Entropy& entropy) {
  return {{"parameters", tally.parameters},
          {"bytes", tally.stored},
          {"source_bytes", tally.source},
          {"ratio", optional_json(ratio(tally))},
          {"exponent_entropy_bits", optional_json(entropy.bits)},
          {"exponents", entropy.words},
          {"exponents_read", entropy.words_read},
          {"entropy_is", sampled(entropy) ? "sampled" : "full"}};
}

Json attention_json(const model::AttentionConfig& attention) {
  if (attention.kind == model::AttentionKind::kMla) {
    return {{"kind", "mla"},
            {"heads", attention.heads},
            {"q_lora_rank", attention.q_lora_rank},
            {"kv_lora_rank", attention.kv_lora_rank},
            {"nope_dim", attention.nope_dim},
            {"rope_dim", attention.rope_dim},
            {"value_dim", attention.value_dim}};
  }
  return {{"kind", "gqa"},
          {"heads", attention.heads},
          {"kv_heads", attention.kv_heads},
          {"head_dim", attention.head_dim}};
}

Json slices_json(const store::Checkpoint& checkpoint, const Sizes& sizes) {
  const std::optional<codec::SliceBits> bits = checkpoint.slices();
  if (!bits) return {};
  return {{"quantiser", codec::kAmat},
          {"high", bits->high},
          {"low", bits->low},
          {"msb_bytes", sizes.msb},
          {"lsb_bytes", sizes.lsb}};
}

// The formats in which matrices are that are no words, by name.
std::set<std::string_view> formats_of(const store::Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const store::TensorInfo& tensor : checkpoint.tensors())
    if (tensor.format != nullptr && !tensor.format->words) names.insert(tensor.format->name);
  return names;
}

Json tensors_json(const store::Checkpoint& checkpoint) {
  Json list = Json::array();
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    list.push_back({{"name", tensor.name}, {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}});
  }
  return list;
}

void print_json(const store::Checkpoint& checkpoint, const Model& model, const Report& report, bool tensors) {
  const model::ModelConfig& config = model.config;
  Json json = {
      {"model", checkpoint.path()},
      {"packed", checkpoint.packed()},
      {"family", store::family_name(checkpoint.family())},
      {"codec", checkpoint.codec()},
      {"slices", slices_json(checkpoint, report.sizes)},
      {"formats", formats_of(checkpoint)},
      {"model_type", config.model_type},
      {"layers", config.layers},
      {"encoder_layers", config.encoder_layers},
      {"sparse_layers", config.sparse_layers()},
      {"experts_per_layer", config.moe.experts},
      {"top_k", config.moe.top_k},
      {"hidden", config.hidden},
      {"vocab", config.vocab},
      {"max_positions", config.max_positions},
      {"widths",
       {{"expert", config.moe.width}, {"shared", config.moe.shared_width}, {"dense", config.dense_width}}},
      {"attention", attention_json(config.attention)},
      {"parameters", {{"total", report.parameters}, {"active", report.active}}},
      {"kv_bytes_per_token", report.kv_bytes_per_token},
      {"experts", group_json(report.sizes.experts, report.experts_entropy)},
      {"dense", group_json(report.sizes.dense, report.dense_entropy)},
      {"ignored", model.ignored},
  };
  for (std::size_t kind = 0; kind < kClasses; ++kind) {
    const Tally& tally = report.sizes.by_class[kind];
    json["classes"][std::string(kClassNames[kind])] = {{"parameters", tally.parameters},
                                                       {"bytes", tally.stored},
                                                       {"source_bytes", tally.source},
                                                       {"ratio", optional_json(ratio(tally))}};
  }
  if (tensors) json["tensors"] = tensors_json(checkpoint);
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

std::string count_text(std::uint64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.2f} B", static_cast<double>(count) * 1e-9);
  if (count >= 1'000'000) return fmt::format("{:.2f} M", static_cast<double>(count) * 1e-6);
  return fmt::format("{}", count);
}

std::string ratio_text(const Tally& tally) {
  const std::optional<double> value = ratio(tally);
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string entropy_text(const Entropy& entropy) {
  if (!entropy.bits) return "none (no BF16 words)";
  if (!sampled(entropy))
    return fmt::format("{:.3f} bits (all {} words)", *entropy.bits, count_text(entropy.words));
  return fmt::format("{:.3f} bits (sampled: {} of {} words)", *entropy.bits, count_text(entropy.words_read),
                     count_text(entropy.words));
}

std::string attention_text(const model::ModelConfig& config) {
  const model::AttentionConfig& a = config.attention;
  if (a.kind == model::AttentionKind::kMla) {
    return fmt::format("MLA, {} heads, latent {} + {}", a.heads, a.kv_lora_rank, a.rope_dim);
  }
  return fmt::format("{} heads of {}, {} for keys and values", a.heads, a.head_dim, a.kv_heads);
}

std::string widths_text(const model::ModelConfig& config) {
  std::string text = fmt::format("hidden {}, expert {}", config.hidden, config.moe.width);
  if (config.moe.shared_width != 0) text += fmt::format(", shared {}", config.moe.shared_width);
  if (config.sparse_layers() != config.layers) text += fmt::format(", dense layers {}", config.dense_width);
  return text;
}

// Names come from a file: only printable ASCII of them may reach a terminal.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string kind_text(const store::Checkpoint& checkpoint) {
  if (!checkpoint.packed()) return "not packed";
  const std::optional<codec::SliceBits> bits = checkpoint.slices();
  const std::set<std::string_view> formats = formats_of(checkpoint);
  return fmt::format(
      "packed, {}codec {}{}",
      bits ? fmt::format("experts in slices of {} bits, ", codec::slice_bits_text(*bits)) : "",
      checkpoint.codec(),
      formats.empty() ? "" : fmt::format(", matrices in {} as they were", fmt::join(formats, ", ")));
}

std::vector<std::string> table_row(std::string_view name, const Tally& tally) {
  return {std::string(name), count_text(tally.parameters), format_bytes(tally.source),
          format_bytes(tally.stored), ratio_text(tally)};
}

std::string sizes_table(const Sizes& sizes, std::size_t columns) {
  std::vector<std::vector<std::string>> rows = {{"", "parameters", "source", "stored", "ratio"}};
  for (std::size_t kind = 0; kind < kClasses; ++kind) {
    const Tally& tally = sizes.by_class[kind];
    if (tally.parts != 0 && kind != static_cast<std::size_t>(Class::kExperts))
      rows.push_back(table_row(kClassNames[kind], tally));
  }
  rows.push_back(table_row("all dense", sizes.dense));
  rows.push_back(table_row("experts", sizes.experts));
  return text_table(rows, columns);
}

// One line a tensor, which scripts can find; on a terminal that one of them does not fit, two.
void print_tensors(const store::Checkpoint& checkpoint) {
  const std::size_t columns = terminal_columns(STDOUT_FILENO, kAnyColumns);
  std::string lines, pairs;
  std::size_t longest = 0;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    const std::string name = printable(tensor.name);
    const std::string line =
        fmt::format("{:<5} {:<20} {}", dtype_name(tensor.dtype), tensor.shape_text(), name);
    longest = std::max(longest, text_columns(line));
    lines += line + '\n';
    pairs += fmt::format("{}\n  {} {}\n", name, dtype_name(tensor.dtype), tensor.shape_text());
  }
  std::cout << '\n' << (longest <= columns ? lines : pairs);
}

void print_text(const store::Checkpoint& checkpoint, const Model& model, const Report& report, bool tensors) {
  const model::ModelConfig& config = model.config;
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  const auto row = [&](std::string_view name, const std::string& text) {
    std::cout << report_row(name, text, columns);
  };
  row("model", fmt::format("{} ({})", escaped_text(checkpoint.path()), kind_text(checkpoint)));
  row("architecture",
      fmt::format(
          "{}: {} layers{}, {} of them with experts; vocabulary {}, {} positions", config.model_type,
          config.layers,
          config.has_encoder() ? fmt::format(" ({} of the encoder)", config.encoder_layers) : "",
          config.sparse_layers(), config.vocab,
          config.max_positions == INT32_MAX ? "any number of" : std::to_string(config.max_positions)));
  row("experts", fmt::format("{} per layer, {} chosen for a token", config.moe.experts, config.moe.top_k));
  row("widths", widths_text(config));
  row("attention", attention_text(config));
  row("parameters",
      fmt::format("{}, {} of them for one token", count_text(report.parameters), count_text(report.active)));
  row("KV cache", fmt::format("{} bytes per token (BF16)", report.kv_bytes_per_token));
  row("exponents", "experts " + entropy_text(report.experts_entropy));
  row("", "dense " + entropy_text(report.dense_entropy));
  std::cout << '\n' << sizes_table(report.sizes, columns);
  if (checkpoint.slices())
    std::cout << wrapped_text(fmt::format("Slices of experts: MSB {}, LSB {}.",
                                          format_bytes(report.sizes.msb), format_bytes(report.sizes.lsb)),
                              columns)
              << '\n';
  if (checkpoint.packed())
    std::cout << wrapped_text("The last two rows count padding and metadata.", columns) << '\n';
  for (const std::string& name : model.ignored)
    std::cout << wrapped_text("not computed with: " + printable(name), columns) << '\n';
  if (tensors) print_tensors(checkpoint);
}

void inspect(const Options& options) {
  check_model_name(options.path);
  if (store::looks_like_gguf(options.path))
    return print_gguf(options.path, options.tensors, options.common.json);
  const std::unique_ptr<store::Checkpoint> checkpoint = store::open_checkpoint(options.path);
  const Model model = model::describe_model(*checkpoint);
  const Report report = make_report(*checkpoint, model, options);
  if (options.common.json) {
    print_json(*checkpoint, model, report, options.tensors);
  } else {
    print_text(*checkpoint, model, report, options.tensors);
  }
}

}  // namespace inspect_command
}  // namespace

void add_inspect(Command& app) {
  using namespace inspect_command;
  Command* command = app.add_command("inspect", "Show what a model is made of and how much packing saves");
  auto options = std::make_shared<Options>();
  add_model_argument(*command, "MODEL", options->path, options->common,
                     "Hugging Face directory, packed store, GGUF file, or a name that sluice list shows");
  command->add_flag(Setting::kTensors, options->tensors, "List all tensors with type and shape");
  command->add_flag(Setting::kFull, options->full,
                    "Read all weights for the entropy of exponents, not a sample");
  add_common_flags(*command, options->common, {.json = "Print one JSON object", .quiet = "No progress bar"});
  command->footer(
      "Shared experts count as dense: every token uses them. Ratios are stored bytes to source bytes.\n"
      "Examples:\n"
      "  sluice inspect Qwen1.5-MoE-A2.7B\n"
      "  sluice inspect qwen.sluice --json");
  command->callback([options] { inspect(*options); });
}

}  // namespace sluice::app
