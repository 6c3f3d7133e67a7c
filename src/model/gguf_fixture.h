// GGUF files of tiny models, for tests: the tensors of a published directory under the names, in the shapes
// and with the rows that such files have.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/float16.h"
#include "codec/matrix_format.h"
#include "device/space.h"
#include "model/architecture.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"
#include "model/gguf_plan.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/gguf_writer.h"

namespace sluice::model::testing {

inline const store::GgufType& type_named(std::string_view name) {
  for (std::uint32_t number = 0; number < 64; ++number)
    if (const store::GgufType* const type = store::gguf_type(number); type != nullptr && type->name == name)
      return *type;
  SLUICE_CHECK(false, std::string(name));
  return *store::gguf_type(0);
}

// Where a block has its scales, and a scale that makes weights of about the size of those of a small model.
struct ScalesOfBlock {
  std::string_view type;
  std::vector<std::size_t> at;  // places of binary16 words
  float scale;
};
inline const std::vector<ScalesOfBlock>& scales_of_blocks() {
  static const std::vector<ScalesOfBlock> rows = {
      {"Q4_0", {0}, 2e-2f},    {"Q4_1", {0, 2}, 1e-2f},   {"Q5_0", {0}, 1e-2f},   {"Q5_1", {0, 2}, 5e-3f},
      {"Q8_0", {0}, 1e-3f},    {"Q2_K", {80, 82}, 4e-3f}, {"Q3_K", {108}, 2e-3f}, {"Q4_K", {0, 2}, 4e-4f},
      {"Q5_K", {0, 2}, 2e-4f}, {"Q6_K", {208}, 5e-5f},    {"IQ4_NL", {0}, 1e-3f}, {"IQ4_XS", {0}, 5e-5f},
      {"MXFP4", {}, 0}};
  return rows;
}

// Random codes under sane scales.
inline std::string random_blocks(const store::GgufType& type, Bytes bytes, std::mt19937_64& random) {
  std::string blocks(bytes, '\0');
  for (char& one : blocks) one = static_cast<char>(random());
  const auto row = std::ranges::find(scales_of_blocks(), type.name, &ScalesOfBlock::type);
  SLUICE_CHECK(row != scales_of_blocks().end(), std::string(type.name));
  for (Bytes block = 0; block < bytes; block += type.bytes) {
    if (row->at.empty()) blocks[block] = static_cast<char>(118 + random() % 4);  // a power of two
    for (const std::size_t at : row->at) {
      const std::uint16_t scale =
          double_to_fp16(row->scale * (0.5 + static_cast<double>(random() % 1024) / 1024));
      std::memcpy(&blocks[block + at], &scale, sizeof(scale));
    }
  }
  return blocks;
}

struct GgufTensorBytes {
  std::vector<std::uint64_t> shape;
  const store::GgufType* type = nullptr;
  std::string bytes;
};

// A model as a GGUF file holds it, in memory.
class GgufModel {
 public:
  // From a published directory whose architecture has a GGUF form.
  explicit GgufModel(const std::string& directory)
      : checkpoint_(store::open_directory(directory)),
        model_(describe_model(*checkpoint_)),
        architecture_(*gguf_architecture_of(model_.config)) {
    keys_ = gguf_keys(architecture_, model_.config);
    for (const TensorSpec& spec : model_.dense) add_dense(spec);
    for (const ExpertPieces& expert : model_.experts) add_expert(expert);
  }

  // Gives matrices random blocks of the types that `type_of` names, by tensor; "" leaves one as it is.
  void quantise(const std::function<std::string_view(const std::string&)>& type_of, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (auto& [name, tensor] : tensors_) {
      const std::string_view wanted = type_of(name);
      if (wanted.empty()) continue;
      tensor.type = &type_named(wanted);
      tensor.bytes = random_blocks(*tensor.type, planned(name, tensor).length(), random);
    }
  }

  // The same numbers as F32.
  GgufModel decoded() const {
    GgufModel words(*this);
    for (auto& [name, tensor] : words.tensors_) {
      const std::uint64_t columns = tensor.shape.back();
      const std::uint64_t rows = tensor.bytes.size() / (columns / tensor.type->elements * tensor.type->bytes);
      const codec::MatrixRef matrix{
          tensor.type->format,
          {rows, columns},
          {device::host_space().address(reinterpret_cast<const std::byte*>(tensor.bytes.data()))}};
      std::string floats(rows * columns * sizeof(float), '\0');
      for (std::uint64_t row = 0; row < rows; ++row)
        codec::row_to_float(matrix, row, reinterpret_cast<float*>(floats.data()) + row * columns);
      tensor = {tensor.shape, &type_named("F32"), std::move(floats)};
    }
    return words;
  }

  std::map<std::string, GgufTensorBytes>& tensors() { return tensors_; }
  std::vector<std::pair<std::string, store::GgufWritten>>& keys() { return keys_; }
  const ModelConfig& config() const { return model_.config; }
  std::string key(std::string_view name) const {
    return std::string(architecture_.name) + "." + std::string(name);
  }

  void write(const std::string& path) const { write(path, tensors_, keys_); }
  // In parts with this many tensors each, at most; the first has none. Returns the first part's path.
  std::string write_parts(const std::string& stem, std::size_t most) const {
    const std::size_t parts = 1 + (tensors_.size() + most - 1) / most;
    const auto path = [&](std::size_t part) {
      return stem + fmt::format("-{:05}-of-{:05}.gguf", part + 1, parts);
    };
    auto next = tensors_.begin();
    for (std::size_t part = 0; part < parts; ++part) {
      std::map<std::string, GgufTensorBytes> own;
      while (part > 0 && next != tensors_.end() && own.size() < most) own.insert(*next++);
      auto keys = part == 0 ? keys_ : std::vector<std::pair<std::string, store::GgufWritten>>();
      keys.emplace_back("split.no", static_cast<std::uint32_t>(part));
      keys.emplace_back("split.count", static_cast<std::uint32_t>(parts));
      keys.emplace_back("split.tensors.count", static_cast<std::uint32_t>(tensors_.size()));
      write(path(part), own, keys);
    }
    return path(0);
  }

 private:
  static store::GgufPlannedTensor planned(const std::string& name, const GgufTensorBytes& tensor) {
    return {name, tensor.shape, tensor.type};
  }

  static void write(const std::string& path, const std::map<std::string, GgufTensorBytes>& tensors,
                    const std::vector<std::pair<std::string, store::GgufWritten>>& keys) {
    store::GgufPlan plan{keys, {}};
    for (const auto& [name, tensor] : tensors) plan.tensors.push_back(planned(name, tensor));
    const store::GgufLayout layout = store::lay_out_gguf(plan);
    std::string file = layout.header;
    std::size_t i = 0;
    for (const auto& [name, tensor] : tensors) {
      file.resize(layout.offsets[i++], '\0');
      file += tensor.bytes;
    }
    file.resize(layout.file_bytes, '\0');
    std::ofstream(path, std::ios::binary) << file;
  }

  std::string read_plane(const store::StoredPiece& stored, std::size_t plane) const {
    const store::Extent& extent = stored.planes[plane].extent;
    std::string bytes(extent.length, '\0');
    std::ifstream file(checkpoint_->weight_files()[extent.file], std::ios::binary);
    file.seekg(static_cast<std::streamoff>(extent.offset));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }

  std::string read(const store::Piece& piece, DType& dtype) const {
    const store::StoredPiece stored = checkpoint_->locate(piece);
    dtype = stored.dtype;
    return read_plane(stored, 0);
  }

  static const store::GgufType& words_of(DType dtype) { return type_named(dtype_name(dtype)); }

  // Vectors and routers are F32.
  static std::string as_floats(const std::string& words, DType dtype) {
    const codec::MatrixRef matrix = codec::word_matrix(reinterpret_cast<const std::byte*>(words.data()),
                                                       dtype, 1, words.size() / dtype_bytes(dtype));
    std::string floats(matrix.shape.columns * sizeof(float), '\0');
    codec::row_to_float(matrix, 0, reinterpret_cast<float*>(floats.data()));
    return floats;
  }

  void add_dense(const TensorSpec& spec) {
    DType dtype{};
    std::string bytes = read({spec.name, 0, product(spec.shape)}, dtype);
    const std::string name = gguf_name(architecture_, spec.role, spec.layer);
    if (spec.role == Role::kKvUp) return add_halves(spec, bytes, dtype);
    if (architecture_.interleaved && (spec.role == Role::kQ || spec.role == Role::kK ||
                                      spec.role == Role::kQBias || spec.role == Role::kKBias))
      bytes = in_pairs(bytes,
                       spec.role == Role::kQ || spec.role == Role::kQBias ? model_.config.attention.heads
                                                                          : model_.config.attention.kv_heads,
                       model_.config.attention.head_dim);
    std::vector<std::uint64_t> shape = spec.shape;
    if (shape.size() == 2 && shape[0] == 1) shape.erase(shape.begin());
    if (spec.role == Role::kExpertUpBias && !model_.config.activation.gate())
      return add_bias_pairs(spec, as_floats(bytes, dtype));
    if (shape.size() == 1 || spec.role == Role::kRouter || is_expert_bias(spec.role))
      tensors_[name] = {shape, &type_named("F32"), as_floats(bytes, dtype)};
    else
      tensors_[name] = {shape, &words_of(dtype), bytes};
  }

  // In each head, row 2j + s is row s · d/2 + j of the original.
  static std::string in_pairs(const std::string& bytes, std::uint64_t heads, std::uint64_t head_rows) {
    const Bytes row = bytes.size() / (heads * head_rows);
    std::string pairs;
    for (std::uint64_t head = 0; head < heads; ++head)
      for (std::uint64_t j = 0; j < head_rows / 2; ++j)
        for (std::uint64_t s = 0; s < 2; ++s)
          pairs += bytes.substr((head * head_rows + s * head_rows / 2 + j) * row, row);
    return pairs;
  }

  void add_halves(const TensorSpec& spec, const std::string& bytes, DType dtype) {
    const AttentionConfig& a = model_.config.attention;
    const Bytes word = dtype_bytes(dtype), row = a.kv_lora_rank * word;
    std::string key, value;
    for (std::uint64_t h = 0; h < a.heads; ++h) {
      const Bytes head = h * (a.nope_dim + a.value_dim) * row;
      for (std::uint64_t r = 0; r < a.kv_lora_rank; ++r)
        for (std::uint64_t n = 0; n < a.nope_dim; ++n) key += bytes.substr(head + n * row + r * word, word);
      value += bytes.substr(head + a.nope_dim * row, a.value_dim * row);
    }
    tensors_[gguf_name(architecture_, Role::kKeyUp, spec.layer)] = {
        {a.heads, a.kv_lora_rank, a.nope_dim}, &words_of(dtype), std::move(key)};
    tensors_[gguf_name(architecture_, Role::kValueUp, spec.layer)] = {
        {a.heads, a.value_dim, a.kv_lora_rank}, &words_of(dtype), std::move(value)};
  }

  std::string& stack(Role role, std::uint32_t layer, std::uint64_t rows, std::uint64_t columns,
                     const store::GgufType& type) {
    GgufTensorBytes& tensor = tensors_[gguf_name(architecture_, role, static_cast<std::int32_t>(layer))];
    tensor.shape = {model_.config.moe.experts, rows, columns};
    tensor.type = &type;
    return tensor.bytes;  // experts come in ascending order
  }

  // The numbers of gate and of up, which stand by turns among (experts, 2 width).
  void add_bias_pairs(const TensorSpec& spec, const std::string& floats) {
    const auto add = [&](Role role, std::size_t first) {
      std::string own;
      for (std::size_t at = first * sizeof(float); at < floats.size(); at += 2 * sizeof(float))
        own += floats.substr(at, sizeof(float));
      tensors_[gguf_name(architecture_, role, spec.layer)] = {
          {spec.shape[0], spec.shape[1] / 2}, &type_named("F32"), std::move(own)};
    };
    add(Role::kExpertGateBias, 0);
    add(Role::kExpertUpBias, 1);
  }

  // Every `step`-th row from `first` of a matrix in MXFP4 as safetensors have it, in blocks of ggml: the
  // scale, then element i in the lower half of byte i, and i + 16 in its upper half.
  std::string as_blocks(const store::Piece& piece, std::uint64_t first, std::uint64_t step) const {
    const store::StoredPiece stored = checkpoint_->locate(piece);
    const std::string codes = read_plane(stored, 0), scales = read_plane(stored, 1);
    const std::uint64_t groups = stored.shape.columns / 32;
    std::string blocks;
    for (std::uint64_t row = first; row < stored.shape.rows; row += step)
      for (std::uint64_t group = row * groups; group < (row + 1) * groups; ++group) {
        const auto code = [&](std::uint64_t i) {
          return static_cast<unsigned char>(codes[group * 16 + i / 2]) >> i % 2 * 4 & 15;
        };
        blocks += scales[group];
        for (std::uint64_t i = 0; i < 16; ++i) blocks += static_cast<char>(code(i) | code(i + 16) << 4);
      }
    return blocks;
  }

  void add_expert_in_mxfp4(const ExpertPieces& expert, std::uint32_t layer) {
    const std::uint64_t width = model_.config.moe.width, hidden = model_.config.hidden;
    const store::GgufType& type = type_named("MXFP4");
    stack(Role::kExpertGate, layer, width, hidden, type) += as_blocks(expert.up, 0, 2);
    stack(Role::kExpertUp, layer, width, hidden, type) += as_blocks(expert.up, 1, 2);
    stack(Role::kExpertDown, layer, hidden, width, type) += as_blocks(expert.down, 0, 1);
  }

  void add_expert(const ExpertPieces& expert) {
    std::uint32_t layer = 0;
    while (!model_.config.sparse[layer] || model_.config.sparse_index(layer) != expert.layer) ++layer;
    if (model_.config.moe.mxfp4) return add_expert_in_mxfp4(expert, layer);
    const std::uint64_t width = model_.config.moe.width, hidden = model_.config.hidden;
    for (const auto& [role, piece, rows, columns] :
         {std::tuple{Role::kExpertGate, &expert.gate, width, hidden},
          std::tuple{Role::kExpertUp, &expert.up, width, hidden},
          std::tuple{Role::kExpertDown, &expert.down, hidden, width}}) {
      DType dtype{};
      const std::string bytes = read(*piece, dtype);
      stack(role, layer, rows, columns, words_of(dtype)) += bytes;
    }
  }

  static std::uint64_t product(const std::vector<std::uint64_t>& shape) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : shape) elements *= dimension;
    return elements;
  }

  std::shared_ptr<const store::Checkpoint> checkpoint_;
  Model model_;
  GgufArchitecture architecture_;
  std::vector<std::pair<std::string, store::GgufWritten>> keys_;
  std::map<std::string, GgufTensorBytes> tensors_;  // in the order of the file
};

}  // namespace sluice::model::testing
