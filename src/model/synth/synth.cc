#include "model/synth/synth.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "model/synth/synth_shard.h"
#include "model/synth/synth_target.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;

// ---- Config

// Sets the first of `keys` that the config has. Error(kInvalid) if it has none of them.
void replace_count(Json& json, std::initializer_list<const char*> keys, std::uint32_t value,
                   const std::string& path) {
  for (const char* key : keys) {
    if (!json.contains(key)) continue;
    json[key] = value;
    return;
  }
  throw Error(ErrorKind::kInvalid, "the config has no field for this number, so the number cannot be changed")
      .in(path + ": " + *keys.begin())
      .expected("the field in the config")
      .found("none")
      .fix("leave the flag out");
}

// For one stack of an encoder-decoder: keeps the share of sparse blocks.
void shrink_stack(Json& json, const char* blocks_key, const char* sparse_key, std::uint32_t blocks,
                  const std::string& path) {
  const JsonObject object(json, path);
  const std::int64_t before = object.integer(blocks_key, 1, INT32_MAX);
  const std::int64_t sparse = object.integer_or(sparse_key, 0, 0, before);
  json[blocks_key] = blocks;
  if (sparse != 0) json[sparse_key] = std::max<std::int64_t>(1, blocks / (before / sparse));
}

// Whether anything was changed.
bool apply_options(Json& json, const SynthOptions& options, const std::string& path) {
  bool changed = false;
  if (options.layers && json.contains("num_decoder_layers")) {
    shrink_stack(json, "num_layers", "num_sparse_encoder_layers", *options.layers, path);
    shrink_stack(json, "num_decoder_layers", "num_sparse_decoder_layers", *options.layers, path);
    changed = true;
  } else if (options.layers) {
    replace_count(json, {"num_hidden_layers"}, *options.layers, path);
    if (const auto types = json.find("layer_types");
        types != json.end() && types->is_array() && !types->empty()) {
      Json::array_t cycled;
      for (std::uint32_t layer = 0; layer < *options.layers; ++layer)
        cycled.push_back((*types)[layer % types->size()]);
      *types = std::move(cycled);
    }
    changed = true;
  }
  if (options.experts) {
    replace_count(json, {"num_experts", "n_routed_experts", "num_local_experts"}, *options.experts, path);
    changed = true;
  }
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (!json.contains(key) || json[key] == "bfloat16") continue;
    json[key] = "bfloat16";
    changed = true;
  }
  return changed;
}

// ---- Tensors

// The two tensors of U8 that have this matrix of all experts of a layer (store/source/mxfp4_pairs.h).
void add_mxfp4(const TensorSpec& first, std::uint64_t experts, std::vector<SynthSpec>& tensors) {
  constexpr std::uint64_t kGroup = 32, kGroupBytes = 16;
  constexpr std::string_view kFirst = ".0.", kWeight = ".weight";
  std::string stem = first.name;  // "….experts.0.down_proj.weight"
  stem.replace(stem.rfind(kFirst), kFirst.size(), ".");
  stem.resize(stem.size() - kWeight.size());
  SynthSpec scales{first, SynthForm::kMxfp4Scales};
  scales.expert = -1;
  scales.name = stem + "_scales";
  scales.shape = {experts, first.shape[0], first.shape[1] / kGroup};
  SynthSpec codes = scales;
  codes.form = SynthForm::kMxfp4Codes;
  codes.name = stem + "_blocks";
  codes.shape.push_back(kGroupBytes);
  tensors.push_back(std::move(codes));
  tensors.push_back(std::move(scales));
}

std::vector<SynthSpec> published_tensors(const ModelConfig& config) {
  std::vector<SynthSpec> tensors;
  for (TensorSpec& spec : tensor_table(config)) {
    if (!config.moe.mxfp4 || spec.expert < 0)
      tensors.push_back({std::move(spec)});
    else if (spec.expert == 0)
      add_mxfp4(spec, config.moe.experts, tensors);
  }
  return tensors;
}

// ---- Files

// u64 length | JSON, padded with blanks to a multiple of 8 | data (store/source/safetensors.h).
std::string safetensors_head(std::span<const SynthSpec> tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  Bytes offset = 0;
  for (const SynthSpec& spec : tensors) {
    header[spec.name] = {{"dtype", dtype_name(spec.dtype())},
                         {"shape", spec.shape},
                         {"data_offsets", {offset, offset + spec.bytes()}}};
    offset += spec.bytes();
  }
  const std::string json = header.dump();
  const std::uint64_t length = round_up(json.size(), 8);
  std::string head;
  for (int shift = 0; shift < 64; shift += 8) head.push_back(static_cast<char>(length >> shift & 0xff));
  head += json;
  head.resize(8 + length, ' ');
  return head;
}

std::span<const SynthSpec> tensors_of(const SynthPlan& plan, const SynthShard& shard) {
  return std::span(plan.tensors).subspan(shard.first, shard.count);
}

std::string index_json(const SynthPlan& plan) {
  Json weight_map = Json::object();
  for (const SynthShard& shard : plan.shards) {
    for (std::size_t i = shard.first; i < shard.first + shard.count; ++i)
      weight_map[plan.tensors[i].name] = shard.file;
  }
  return Json{{"metadata", {{"total_size", plan.bytes}}}, {"weight_map", std::move(weight_map)}}.dump(2) +
         "\n";
}

// A directory that is removed with its content unless it was published under its final name.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& final_path)
      : final_path_(final_path), path_(fmt::format("{}.partial-{}", final_path, ::getpid())) {
    std::error_code error;
    if (!fs::create_directory(path_, error)) {
      throw error ? io_error("mkdir", path_, error.value())
                  : Error(ErrorKind::kInvalid, "the temporary directory of an earlier run still exists")
                        .in(path_)
                        .fix("remove it");
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!published_) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void publish() {
    sync_directory(path_);
    rename_no_replace(path_, final_path_);
    published_ = true;
    sync_directory(parent_of(final_path_));
  }

 private:
  std::string final_path_, path_;
  bool published_ = false;
};

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directory(path, error);
  if (error) throw io_error("mkdir", path, error.value());
}

// What the files of the plan take on a disk: whole blocks, and one more for the entries of each file and of
// the directory.
Bytes disk_bytes(const SynthPlan& plan) {
  const auto blocks = [](Bytes bytes) { return round_up(bytes, kBlockBytes) + kBlockBytes; };
  Bytes bytes = plan.bytes + kBlockBytes + blocks(index_json(plan).size()) + blocks(plan.config_json.size());
  for (const SynthShard& shard : plan.shards)
    bytes += blocks(safetensors_head(tensors_of(plan, shard)).size() + shard.bytes) - shard.bytes;
  for (const tokenizer::TokenizerFile& file : plan.tokenizer) bytes += blocks(file.content.size());
  return bytes;
}

}  // namespace

SynthPlan plan_synth(const std::string& config_path, const SynthOptions& options) {
  SynthPlan plan;
  plan.seed = options.seed;
  plan.embedding_scale = options.embedding_scale;
  plan.embedding_common = options.embedding_common;
  plan.config_json = read_text_file(config_path, JsonLimits().max_bytes);
  Json json = parse_json(plan.config_json, config_path);
  // An error in the config itself is reported before an error that the options cause.
  parse_config(json, config_path);
  if (apply_options(json, options, config_path)) plan.config_json = json.dump(2) + "\n";
  ModelConfig config;
  try {
    config = parse_config(json, config_path);
    plan.tensors = published_tensors(config);
    plan.config = config;
  } catch (Error& error) {
    throw error.fix("choose other " + Setting::kLayers + " or " + Setting::kExperts +
                    ": the config itself is sound");
  }
  if (config.tied_head && options.embedding_common > 0)
    throw Error(
        ErrorKind::kUsage,
        "embeddings that are also the output head cannot have a common part: one token would always win")
        .in(Setting::kEmbeddingCommon)
        .expected("a config whose tie_word_embeddings is false")
        .found("true, in " + config_path)
        .fix("leave " + Setting::kEmbeddingCommon + " out, or correct the config");

  const Bytes shard_bytes = std::max<Bytes>(options.shard_bytes, 1);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const Bytes bytes = plan.tensors[i].bytes();
    const bool fits =
        !plan.shards.empty() && bytes <= shard_bytes && plan.shards.back().bytes <= shard_bytes - bytes;
    if (!fits) plan.shards.push_back({.file = "", .first = i});
    ++plan.shards.back().count;
    plan.shards.back().bytes += bytes;
    plan.bytes += bytes;
  }
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    plan.shards[i].file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, plan.shards.size());
  }
  return plan;
}

void write_synth(const SynthPlan& plan, const std::string& directory, ThreadPool& threads,
                 const std::function<bool(Bytes)>& go_on) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  check_target(path, disk_bytes(plan));
  TemporaryDirectory temporary(path);
  const std::vector<float> quantiles = make_weight_quantiles();
  Bytes before = 0;  // bytes of the shards that are done
  auto on_progress = [&](Bytes of_shard) {
    if (!go_on(before + of_shard)) throw interrupted_error("nothing is left behind").in(path);
  };
  for (const SynthShard& shard : plan.shards) {
    const std::span<const SynthSpec> specs = tensors_of(plan, shard);
    std::vector<SynthTensor> tensors;
    for (const SynthSpec& spec : specs) {
      SynthValues::Options values;
      if (spec.role == Role::kEmbedding) values = {plan.embedding_scale, plan.embedding_common};
      tensors.push_back(
          tensor_of(SynthValues(spec, plan.seed, quantiles, values), spec.elements() / spec.columns()));
    }
    write_synth_shard(temporary.file(shard.file), safetensors_head(specs), tensors, threads, on_progress);
    before += shard.bytes;
  }
  write_file_atomically(temporary.file("model.safetensors.index.json"), index_json(plan));
  write_file_atomically(temporary.file("config.json"), plan.config_json);
  for (const tokenizer::TokenizerFile& file : plan.tokenizer) {
    make_directory(parent_of(temporary.file(file.name)));
    write_file_atomically(temporary.file(file.name), file.content);
  }
  temporary.publish();
}

}  // namespace sluice::model
