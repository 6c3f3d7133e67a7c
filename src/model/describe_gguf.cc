#include "model/describe_gguf.h"

#include <utility>

#include "base/error.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"
#include "model/inventory.h"
#include "store/source/gguf_keys.h"
#include "tokenizer/gguf/gguf_specials.h"

namespace sluice::model {
namespace {

// Takes tensors for the lines of an architecture's table.
class Matching {
 public:
  Matching(const GgufArchitecture& architecture, const ModelConfig& config,
           const store::Checkpoint& checkpoint)
      : architecture_(architecture),
        config_(config),
        inventory_(checkpoint, {.name = "the keys of the file", .leading_ones_may_lack = true}) {}

  TensorSpec dense(TensorSpec spec) {
    spec.name = name_of(spec);
    inventory_.take(spec.name, spec.shape);
    return spec;
  }

  // The key and value halves of MLA's up projection, which files hold apart, the keys' transposed.
  bool has_halves(const TensorSpec& spec) const {
    return spec.role == Role::kKvUp && !inventory_.has(name_of(spec)) &&
           inventory_.has(gguf_name(architecture_, Role::kKeyUp, spec.layer));
  }
  std::pair<TensorSpec, TensorSpec> halves(const TensorSpec& spec) {
    const AttentionConfig& a = config_.attention;
    const std::uint64_t heads = a.heads, rank = a.kv_lora_rank;
    return {half(spec, Role::kKeyUp, {heads, rank, a.nope_dim}),
            half(spec, Role::kValueUp, {heads, a.value_dim, rank})};
  }

  // The matrices of one expert, which are consecutive lines of the table.
  ExpertPieces expert(std::uint32_t sparse_index, std::span<const TensorSpec> specs) {
    ExpertPieces pieces{.layer = sparse_index,
                        .index = static_cast<std::uint32_t>(specs[0].expert),
                        .gate = {},
                        .up = {},
                        .down = {}};
    for (const TensorSpec& spec : specs) piece_of(pieces, spec.role) = slice(spec);
    return pieces;
  }

  std::vector<std::string> leave() const {
    return inventory_.leave(config_, [&](std::string_view name) { return gguf_carries(config_, name); });
  }

 private:
  std::string name_of(const TensorSpec& spec) const {
    std::string name = gguf_name(architecture_, spec.role, spec.layer);
    SLUICE_CHECK(!name.empty(), spec.name);
    return name;
  }

  TensorSpec half(const TensorSpec& spec, Role role, const Shape& stored) {
    TensorSpec half{
        gguf_name(architecture_, role, spec.layer), {stored[0] * stored[1], stored[2]}, role, spec.layer, -1};
    inventory_.take(half.name, stored);
    return half;
  }

  static store::Piece& piece_of(ExpertPieces& pieces, Role role) {
    return role == Role::kExpertGate ? pieces.gate : role == Role::kExpertUp ? pieces.up : pieces.down;
  }

  store::Piece slice(const TensorSpec& spec) {
    std::string name = name_of(spec);
    if (spec.expert == 0) inventory_.take(name, {config_.moe.experts, spec.shape[0], spec.shape[1]});
    const std::uint64_t matrix = elements(spec.shape);
    return {std::move(name), static_cast<std::uint64_t>(spec.expert) * matrix, matrix};
  }

  const GgufArchitecture& architecture_;
  const ModelConfig& config_;
  Inventory inventory_;
};

}  // namespace

Model describe_gguf(const store::Checkpoint& checkpoint, const store::GgufHeader& header) {
  const store::GgufKeys keys(header, checkpoint.path());
  const GgufArchitecture& source = find_gguf_architecture(keys);
  Model model;
  model.config = with_gate_apart(parse_config(gguf_config(source, keys, checkpoint), checkpoint.path()));
  model.config.attention.rope.interleaved |= source.interleaved;
  const tokenizer::GgufSpecials specials = tokenizer::read_gguf_specials(header, checkpoint.path());
  model.config.bos.clear();
  if (specials.bos) model.config.bos = {*specials.bos};
  model.config.eos = specials.ends;
  const ModelConfig& config = model.config;

  const std::vector<TensorSpec> table = tensor_table(config);
  Matching matching(source, config, checkpoint);
  const std::size_t matrices = config.expert_matrices();
  model.experts.reserve(std::size_t{config.moe.experts} * config.sparse_layers());
  for (std::size_t i = 0; i < table.size();) {
    const TensorSpec& spec = table[i];
    if (spec.expert >= 0) {
      const std::uint32_t sparse_index = config.sparse_index(static_cast<std::uint32_t>(spec.layer));
      model.experts.push_back(matching.expert(sparse_index, std::span(table).subspan(i, matrices)));
      i += matrices;
      continue;
    }
    if (matching.has_halves(spec)) {
      auto [keys_half, values_half] = matching.halves(spec);
      model.dense.push_back(std::move(keys_half));
      model.dense.push_back(std::move(values_half));
    } else {
      model.dense.push_back(matching.dense(spec));
    }
    ++i;
  }
  model.ignored = matching.leave();
  return model;
}

}  // namespace sluice::model
