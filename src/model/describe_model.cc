// Matches the tensors of a checkpoint with the table of its architecture.
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "model/architecture.h"
#include "model/describe_gguf.h"
#include "model/inventory.h"

namespace sluice::model {
namespace {

// "model.layers.3.mlp.experts.7.up_proj.weight" -> "model.layers.3.mlp.experts"
std::string_view experts_prefix(std::string_view name) {
  constexpr std::string_view kExperts = ".experts";
  return name.substr(0, name.find(kExperts) + kExperts.size());
}

// A router has one of three names; exports of Mixtral use both the first and the second.
std::string router_name(const Inventory& inventory, const TensorSpec& spec) {
  if (inventory.has(spec.name)) return spec.name;
  const std::string layer = "model.layers." + std::to_string(spec.layer) + ".";
  for (const std::string_view name :
       {"mlp.gate.weight", "block_sparse_moe.gate.weight", "mlp.router.weight"}) {
    const std::string candidate = layer + std::string(name);
    if (inventory.has(candidate)) return candidate;
  }
  return spec.name;
}

// If a layer's experts are stacked into two 3-D tensors: the common prefix of their names.
std::optional<std::string> stacked_prefix(const Inventory& inventory, const TensorSpec& first) {
  if (inventory.has(first.name)) return std::nullopt;
  const std::string own(experts_prefix(first.name));
  const std::string common = "model.layers." + std::to_string(first.layer) + ".mlp.experts";
  for (const std::string& prefix : {own, common}) {
    if (inventory.has(prefix + ".gate_up_proj")) return prefix;
  }
  return std::nullopt;
}

// Refuses a stack of experts in words whose rows would be by turns: exports have it transposed.
void refuse_words(const Inventory& inventory, const std::string& name) {
  const store::TensorInfo& tensor = inventory.at(name);
  if (tensor.format != nullptr) return;
  throw inventory
      .error(ErrorKind::kUnsupported, "experts of this architecture that are not quantised are transposed",
             name)
      .expected(name + "_blocks and " + name + "_scales, in MXFP4")
      .found(std::string(dtype_name(tensor.dtype)) + ", " + tensor.shape_text())
      .fix("use the files that the model was published with");
}

// Takes <prefix>.gate_up_proj [N, 2 width, hidden], the gate's rows first or by turns with those of up, and
// <prefix>.down_proj [N, hidden, width].
void take_stacked(Inventory& inventory, const std::string& prefix, std::uint32_t sparse_index,
                  const ModelConfig& config, std::vector<ExpertPieces>& experts) {
  const std::uint64_t count = config.moe.experts, width = config.moe.width, hidden = config.hidden;
  const std::uint64_t matrix = width * hidden;
  const std::string gate_up = prefix + ".gate_up_proj", down = prefix + ".down_proj";
  const bool by_turns = !config.activation.gate();
  if (by_turns) refuse_words(inventory, gate_up);
  inventory.take(gate_up, {count, 2 * width, hidden});
  inventory.take(down, {count, hidden, width});
  for (std::uint32_t expert = 0; expert < count; ++expert) {
    const std::uint64_t first = 2 * expert * matrix;
    ExpertPieces& pieces = experts.emplace_back();
    pieces.layer = sparse_index;
    pieces.index = expert;
    if (!by_turns) pieces.gate = {gate_up, first, matrix};
    pieces.up =
        by_turns ? store::Piece{gate_up, first, 2 * matrix} : store::Piece{gate_up, first + matrix, matrix};
    pieces.down = {down, expert * matrix, matrix};
  }
}

store::Piece take_whole(Inventory& inventory, TensorSpec& spec) {
  inventory.take(spec.name, spec.shape);
  return {std::move(spec.name), 0, elements(spec.shape)};
}

// Takes consecutive lines of the table: gate (if experts have one), up and down of one expert.
ExpertPieces take_expert(Inventory& inventory, std::uint32_t sparse_index, TensorSpec* specs) {
  ExpertPieces expert;
  expert.layer = sparse_index;
  expert.index = static_cast<std::uint32_t>(specs[0].expert);
  const std::string& first = specs[0].name;
  if (specs[0].role == Role::kExpertGate) expert.gate = take_whole(inventory, *specs++);
  SLUICE_CHECK(specs[0].role == Role::kExpertUp && specs[1].role == Role::kExpertDown &&
                   specs[0].expert == specs[1].expert,
               first);
  expert.up = take_whole(inventory, specs[0]);
  expert.down = take_whole(inventory, specs[1]);
  return expert;
}

ModelConfig read_config(const store::Checkpoint& checkpoint) {
  const std::optional<std::string> path = checkpoint.find_file("config.json");
  if (!path) {
    const std::string place = checkpoint.path() + "/config.json";
    std::error_code ignored;
    if (std::filesystem::is_directory(place, ignored))
      throw Error(ErrorKind::kInvalid, "not a file")
          .in(place)
          .expected("the model's configuration")
          .found("a directory")
          .fix("put the published config.json in its place");
    throw Error(ErrorKind::kNotFound, "config.json is missing")
        .in(checkpoint.path())
        .expected("a model as Hugging Face publishes it, or a packed store of one")
        .found(checkpoint.packed() ? "a packed store without it" : "weights without it")
        .fix(checkpoint.packed() ? "pack the model again, from a directory that has it"
                                 : "download it beside the weights");
  }
  return parse_config(read_json_file(*path), *path);
}

GenerationConfig read_generation_config(const store::Checkpoint& checkpoint, ModelConfig& config) {
  const std::optional<std::string> path = checkpoint.find_file("generation_config.json");
  return path ? parse_generation_config(read_json_file(*path), *path, config) : GenerationConfig();
}

}  // namespace

Model describe_model(const store::Checkpoint& checkpoint) {
  if (const auto header = checkpoint.gguf()) return describe_gguf(checkpoint, *header);
  Model model;
  model.config = read_config(checkpoint);
  model.generation = read_generation_config(checkpoint, model.config);
  const ModelConfig& config = model.config;
  const Architecture& architecture = find_architecture(config.model_type, checkpoint.path());
  std::vector<TensorSpec> table = architecture.tensors(config);

  Inventory inventory(checkpoint, {.name = "config.json"});
  model.experts.reserve(std::size_t{config.moe.experts} * config.sparse_layers());
  std::uint32_t sparse_index = 0;
  for (std::size_t i = 0; i < table.size();) {
    TensorSpec& spec = table[i];
    if (spec.expert < 0) {
      if (spec.role == Role::kRouter) spec.name = router_name(inventory, spec);
      inventory.take(spec.name, spec.shape);
      model.dense.push_back(std::move(spec));
      ++i;
      continue;
    }
    // The experts of a layer are neighbours in the table.
    const std::size_t matrices = config.expert_matrices();
    const std::size_t end = i + matrices * config.moe.experts;
    SLUICE_CHECK(end <= table.size(), spec.name);
    const bool stacks = config.activation.kind != Activation::kRelu;
    if (const auto prefix = stacks ? stacked_prefix(inventory, spec) : std::nullopt) {
      take_stacked(inventory, *prefix, sparse_index, config, model.experts);
      i = end;
    }
    for (; i < end; i += matrices) {
      model.experts.push_back(take_expert(inventory, sparse_index, &table[i]));
    }
    ++sparse_index;
  }
  model.ignored =
      inventory.leave(config, [&](std::string_view name) { return architecture.carries(config, name); });
  return model;
}

const TensorSpec* Model::find(Role role, std::int32_t layer) const {
  if (role == Role::kHead && config.tied_head) role = Role::kEmbedding;
  for (const TensorSpec& spec : dense) {
    if (spec.role == role && spec.layer == layer) return &spec;
  }
  return nullptr;
}

}  // namespace sluice::model
