// Matches the tensors of a checkpoint with the table of its architecture.
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::uint64_t dim : shape) text.append(text.size() > 1 ? ", " : "").append(std::to_string(dim));
  return text + "]";
}

std::uint64_t elements(const Shape& shape) {  // tensor_table has checked the product
  std::uint64_t product = 1;
  for (const std::uint64_t dim : shape) product *= dim;
  return product;
}

// "model.layers.3.mlp.experts.7.up_proj.weight" -> "model.layers.3.mlp.experts"
std::string_view experts_prefix(std::string_view name) {
  constexpr std::string_view kExperts = ".experts";
  return name.substr(0, name.find(kExperts) + kExperts.size());
}

// The tensors of a checkpoint by name, with marks for those that were asked for.
class Inventory {
 public:
  explicit Inventory(const store::Checkpoint& checkpoint)
      : path_(checkpoint.path()), tensors_(checkpoint.tensors()), used_(tensors_.size(), false) {
    index_.reserve(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  }

  bool has(std::string_view name) const { return index_.contains(name); }

  // Requires the tensor with this shape and a type that can be computed with.
  void take(std::string_view name, const Shape& shape) {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      throw error(ErrorKind::kInvalid, "tensor is missing", name)
          .expected(shape_text(shape))
          .found("no such tensor")
          .fix("download all weight files, and the config.json that belongs to them");
    }
    const store::TensorInfo& tensor = tensors_[found->second];
    if (tensor.shape != shape) {
      throw error(ErrorKind::kInvalid, "tensor has a shape that config.json does not give it", name)
          .expected(shape_text(shape))
          .found(shape_text(tensor.shape))
          .fix("download the config.json that belongs to these weights");
    }
    if (tensor.format != nullptr) {
      check_format(tensor);
    } else if (tensor.dtype != DType::kBF16 && tensor.dtype != DType::kF16 && tensor.dtype != DType::kF32) {
      throw error(ErrorKind::kUnsupported, "tensor has a type that is not computed with", name)
          .expected("BF16, F16 or F32")
          .found(dtype_name(tensor.dtype))
          .fix("use an unquantised version of this model");
    }
    used_[found->second] = true;
  }

  // Requires that the matrices of the tensor can be stored in its format.
  void check_format(const store::TensorInfo& tensor) const {
    const codec::MatrixFormat& format = *tensor.format;
    const std::uint64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    const std::uint64_t rows = tensor.shape.size() < 2 ? 1 : tensor.shape[tensor.shape.size() - 2];
    if (format.input && format.fits({rows, columns})) return;
    throw error(ErrorKind::kUnsupported, "tensor has a format that is not computed with in this shape",
                tensor.name)
        .expected("rows and columns in whole blocks of " + std::to_string(format.block.rows) + " by " +
                  std::to_string(format.block.columns))
        .found(std::string(format.name) + ", " + tensor.shape_text())
        .fix("use an unquantised version of this model");
  }

  // Names of the tensors that nobody took; Error for a tensor that the architecture does not know either.
  std::vector<std::string> leave(const Architecture& architecture, const ModelConfig& config) const {
    std::vector<std::string> ignored;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (used_[i]) continue;
      if (!architecture.carries(config, tensors_[i].name)) {
        throw error(ErrorKind::kInvalid, "tensor is not one of this architecture", tensors_[i].name)
            .expected("only tensors of " + config.model_type + " with " + std::to_string(config.layers) +
                      " layers")
            .found(shape_text(tensors_[i].shape))
            .fix("compare config.json with the weight files");
      }
      ignored.push_back(tensors_[i].name);
    }
    return ignored;
  }

 private:
  Error error(ErrorKind kind, std::string_view message, std::string_view tensor) const {
    Error error(kind, message);
    error.in(path_ + ": " + std::string(tensor));
    return error;
  }

  const std::string& path_;
  const std::vector<store::TensorInfo>& tensors_;
  std::vector<bool> used_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

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

// Takes <prefix>.gate_up_proj [N, 2 width, hidden], the gate's rows first, and <prefix>.down_proj [N, hidden,
// width].
void take_stacked(Inventory& inventory, const std::string& prefix, std::uint32_t sparse_index,
                  const ModelConfig& config, std::vector<ExpertPieces>& experts) {
  const std::uint64_t count = config.moe.experts, width = config.moe.width, hidden = config.hidden;
  const std::uint64_t matrix = width * hidden;
  const std::string gate_up = prefix + ".gate_up_proj", down = prefix + ".down_proj";
  inventory.take(gate_up, {count, 2 * width, hidden});
  inventory.take(down, {count, hidden, width});
  for (std::uint32_t expert = 0; expert < count; ++expert) {
    experts.push_back({.layer = sparse_index,
                       .index = expert,
                       .gate = {gate_up, 2 * expert * matrix, matrix},
                       .up = {gate_up, (2 * expert + 1) * matrix, matrix},
                       .down = {down, expert * matrix, matrix}});
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
  Model model;
  model.config = read_config(checkpoint);
  model.generation = read_generation_config(checkpoint, model.config);
  const ModelConfig& config = model.config;
  const Architecture& architecture = find_architecture(config.model_type, checkpoint.path());
  std::vector<TensorSpec> table = architecture.tensors(config);

  Inventory inventory(checkpoint);
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
    if (const auto prefix = matrices == 3 ? stacked_prefix(inventory, spec) : std::nullopt) {
      take_stacked(inventory, *prefix, sparse_index, config, model.experts);
      i = end;
    }
    for (; i < end; i += matrices) {
      model.experts.push_back(take_expert(inventory, sparse_index, &table[i]));
    }
    ++sparse_index;
  }
  model.ignored = inventory.leave(architecture, config);
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
