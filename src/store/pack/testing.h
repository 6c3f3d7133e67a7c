// Tiny checkpoints and directories for tests. Not part of the program: only *_test.cc files include it.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/hash.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/pack.h"

namespace sluice::store::testing {

namespace fs = std::filesystem;

// A fresh directory, removed with its content.
class TempDirectory {
 public:
  // Uses a directory in memory where one exists: these tests sync a lot.
  TempDirectory() {
    const char* base = std::getenv("TMPDIR");
    if (base == nullptr || *base == '\0') base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = std::string(base) + "/sluice-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + name);
    path_ = name;
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Every file below `path` by relative name, links followed; an empty directory is "name/" → "".
inline std::map<std::string, std::string> read_tree(const std::string& path) {
  std::map<std::string, std::string> tree;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(path, options)) {
    const std::string name = entry.path().lexically_relative(path).string();
    if (entry.is_directory()) {
      if (fs::is_empty(entry.path())) tree[name + "/"] = "";
    } else {
      tree[name] = read_file(entry.path().string());
    }
  }
  return tree;
}

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

inline std::string little_endian_u64(std::uint64_t value) {
  std::string text;
  for (int i = 0; i < 8; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Header length and header only.
inline std::string safetensors_head(const std::string& json) { return little_endian_u64(json.size()) + json; }

// Tensors in the given order; `padding` blanks after the header's JSON.
inline std::string safetensors_bytes(const std::vector<TestTensor>& tensors, std::size_t padding = 0,
                                     std::string_view metadata = "") {
  std::string json = "{", data;
  if (!metadata.empty()) json += fmt::format("\"__metadata__\":{}{}", metadata, tensors.empty() ? "" : ",");
  for (const TestTensor& tensor : tensors) {
    json += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        &tensor == tensors.data() ? "" : ",", tensor.name, tensor.dtype,
                        fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  return safetensors_head(json + "}" + std::string(padding, ' ')) + data;
}

// Words like those of a trained model: Gaussian, 0.02.
inline std::string gaussian_bf16(std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::string bytes(static_cast<std::size_t>(2 * count), '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint16_t word = float_to_bf16(normal(random));
    std::memcpy(bytes.data() + 2 * i, &word, 2);
  }
  return bytes;
}

inline std::string random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Shape of an invented model: `layers` × `experts` experts of (width, hidden), (width, hidden), (hidden,
// width).
struct TinyModel {
  unsigned layers = 2, experts = 3, hidden = 24, width = 20;
  std::string expert_dtype = "BF16";
  std::uint64_t seed = 1;
};

inline std::vector<TestTensor> tiny_tensors(const TinyModel& model) {
  std::vector<TestTensor> tensors;
  std::uint64_t seed = model.seed * 1000;
  const std::uint64_t matrix = std::uint64_t{model.width} * model.hidden;
  const auto width = [](const std::string& dtype) { return dtype == "F32" ? 4 : 2; };
  const auto expert_bytes = [&] {
    return model.expert_dtype == "BF16"
               ? gaussian_bf16(matrix, ++seed)
               : random_bytes(static_cast<std::size_t>(matrix) * width(model.expert_dtype), ++seed);
  };
  tensors.push_back({"embed.weight",
                     "BF16",
                     {1200, model.hidden + 8},
                     gaussian_bf16(1200ull * (model.hidden + 8), ++seed)});
  for (unsigned layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    tensors.push_back({prefix + "norm", "F32", {model.hidden}, random_bytes(4 * model.hidden, ++seed)});
    tensors.push_back(
        {prefix + "router", "F16", {model.experts, 3}, random_bytes(6 * model.experts, ++seed)});
    for (unsigned expert = 0; expert < model.experts; ++expert) {
      const std::string name = fmt::format("{}experts.{}.", prefix, expert);
      tensors.push_back({name + "down", model.expert_dtype, {model.hidden, model.width}, expert_bytes()});
      tensors.push_back({name + "gate", model.expert_dtype, {model.width, model.hidden}, expert_bytes()});
      tensors.push_back({name + "up", model.expert_dtype, {model.width, model.hidden}, expert_bytes()});
    }
  }
  tensors.push_back({"scalar", "I64", {}, random_bytes(8, ++seed)});
  tensors.push_back({"zero", "BF16", {0, 7}, ""});
  return tensors;
}

inline PackPlan tiny_plan(const TinyModel& model) {
  PackPlan plan;
  plan.architecture = "tiny";
  const std::uint64_t matrix = std::uint64_t{model.width} * model.hidden;
  for (unsigned layer = 0; layer < model.layers; ++layer) {
    for (unsigned expert = 0; expert < model.experts; ++expert) {
      const std::string name = fmt::format("layers.{}.experts.{}.", layer, expert);
      plan.experts.push_back(
          {layer,
           expert,
           {{name + "gate", 0, matrix}, {name + "up", 0, matrix}, {name + "down", 0, matrix}}});
    }
  }
  return plan;
}

// Writes "model.safetensors" and a config to `directory`.
inline void write_tiny_model(const std::string& directory, const TinyModel& model) {
  write_file(directory + "/model.safetensors",
             safetensors_bytes(tiny_tensors(model), 5, "{\"format\":\"pt\"}"));
  write_file(directory + "/config.json", "{\"model_type\": \"tiny\"}\n");
}

// The same model in `shards` files with an index.
inline void write_sharded_tiny_model(const std::string& directory, const TinyModel& model, unsigned shards) {
  const std::vector<TestTensor> tensors = tiny_tensors(model);
  std::string map;
  for (unsigned shard = 0; shard < shards; ++shard) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    std::vector<TestTensor> mine;
    for (std::size_t i = shard; i < tensors.size(); i += shards) {
      mine.push_back(tensors[i]);
      map += fmt::format("{}\"{}\":\"{}\"", map.empty() ? "" : ",", tensors[i].name, file);
    }
    write_file(fmt::format("{}/{}", directory, file), safetensors_bytes(mine, shard * 3));
  }
  write_file(directory + "/model.safetensors.index.json",
             fmt::format("{{\"metadata\":{{\"total_size\":1}},\"weight_map\":{{{}}}}}", map));
  write_file(directory + "/config.json", "{\"model_type\": \"tiny\"}\n");
}

// Options with which even a tiny store has several expert files, journal records and chunks.
inline PackOptions tiny_options(const std::string& codec) {
  PackOptions options;
  options.codec = codec;
  options.chunks = 3;
  options.threads = 2;
  options.expert_file_bytes = 16 * kKiB;
  options.journal_bytes = 4 * kKiB;
  return options;
}

// Damage to a chunk of codec native behind a correct checksum: a list that begins elsewhere, which reading
// detects, or a code that leaves tier 1, which decoding detects.
enum class Damage { kStructure, kCodes };

struct DamagedChunk {
  std::string file;
  Region bytes;
};

// Damages the first chunk of the tensor's first piece, in a store that then claims it was written so.
inline DamagedChunk damage_chunk(const std::string& store, std::string_view tensor, Damage damage) {
  const std::string manifest_path = store + "/" + std::string(kManifestName);
  Manifest manifest = parse_manifest(read_file(manifest_path), manifest_path);
  const auto piece = std::ranges::find_if(manifest.pieces, [&](const PieceEntry& entry) {
    return manifest.tensors[entry.tensor].name == tensor;
  });
  if (piece == manifest.pieces.end() || !piece->tiled()) throw std::runtime_error("nothing to damage");
  StoredChunk& chunk = manifest.chunks[piece->first_chunk];
  if (!chunk.coded) throw std::runtime_error("the chunk is not coded");
  const DamagedChunk damaged{store + "/" + manifest.data_files[piece->file].name, chunk.bytes};
  std::string content = read_file(damaged.file);
  const std::span bytes(content.data() + chunk.bytes.offset, static_cast<std::size_t>(chunk.bytes.length));
  const std::uint64_t groups = chunk.count / piece->tiles.group_places();
  if (damage == Damage::kStructure) {
    bytes[0] ^= 1;  // where the first group's lists begin
  } else {
    std::uint32_t tables = 0;
    std::memcpy(&tables, bytes.data() + 12 * groups + 4, sizeof tables);
    const std::span tier1 = bytes.subspan((12 * groups + 8 + 13 * tables + 63) / 64 * 64);
    const auto first = std::ranges::find_if(tier1, [](char byte) { return (byte & 3) == 3; });
    if (first == tier1.end()) throw std::runtime_error("no code leaves tier 1");
    *first ^= 1;  // 3, of tier 2, becomes 2
  }
  chunk.xxh3 = xxh3(std::as_bytes(bytes));
  write_file(damaged.file, content);
  write_file(manifest_path, write_manifest(manifest));
  return damaged;
}

}  // namespace sluice::store::testing
