// A packed store with matrices in formats, made by hand from docs/store-format.md: no source that pack()
// reads has such matrices. Any format with planes of fixed sizes can be stored so. For tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "codec/matrix_format.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/testing.h"

namespace sluice::store::testing {

// One matrix of an expert; planes are tensors of the source, in the order of the format.
struct FormatMatrix {
  const codec::MatrixFormat* format = nullptr;
  codec::MatrixShape shape;
  std::vector<TestTensor> planes;
};

struct FormatExpert {
  std::uint32_t layer = 0, index = 0;
  std::vector<FormatMatrix> matrices;
};

struct FormatModel {
  std::vector<TestTensor> dense;      // at least one
  std::vector<FormatExpert> experts;  // ascending
  std::string config;                 // the text of config.json; empty: there is none
};

// The store of one source: first the source, then the pieces one behind the other.
class FormatStoreWriter {
 public:
  FormatStoreWriter(std::string source, std::string store)
      : source_(std::move(source)), store_(std::move(store)) {}

  Manifest write(const FormatModel& model, std::span<const codec::MatrixFormat* const> more_formats) {
    manifest_.architecture = "tiny";
    manifest_.more_formats = more_formats;
    write_source(model);
    for (const TestTensor& tensor : model.dense) add_dense(tensor);
    manifest_.dense_pieces = static_cast<std::uint32_t>(manifest_.pieces.size());
    for (const FormatExpert& expert : model.experts) add_expert(expert);
    dense_.resize(round_up(dense_.size(), kRegionAlignment));
    experts_.resize(round_up(experts_.size(), kRegionAlignment));
    manifest_.data_files = {{"dense.bin", dense_.size()}, {expert_file_name(0), experts_.size()}};
    write_file(store_ + "/dense.bin", dense_);
    write_file(store_ + "/" + expert_file_name(0), experts_);
    write_file(store_ + "/manifest.json", write_manifest(manifest_));
    return manifest_;
  }

 private:
  static std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  static std::string sha256(const std::string& text) {
    Sha256Stream sum;
    sum.update(bytes_of(text));
    return sum.hex_digest();
  }

  // model.safetensors, with the header also in the store, and config.json in both.
  void write_source(const FormatModel& model) {
    std::vector<TestTensor> tensors = model.dense;
    for (const FormatExpert& expert : model.experts)
      for (const FormatMatrix& matrix : expert.matrices)
        tensors.insert(tensors.end(), matrix.planes.begin(), matrix.planes.end());
    const std::string file = safetensors_bytes(tensors);
    write_file(source_ + "/model.safetensors", file);
    Bytes header = file.size();
    for (const TestTensor& tensor : tensors) header -= tensor.bytes.size();
    write_file(store_ + "/headers.bin", file.substr(0, header));
    if (!model.config.empty()) {
      for (const std::string& path : {source_ + "/config.json", store_ + "/files/config.json"})
        write_file(path, model.config);
      manifest_.sources.push_back({"config.json", model.config.size(), sha256(model.config)});
    }
    const auto weights = static_cast<std::uint32_t>(manifest_.sources.size());
    manifest_.sources.push_back({"model.safetensors",
                                 file.size(),
                                 sha256(file),
                                 true,
                                 {0, header},
                                 xxh3(bytes_of(file.substr(0, header)))});
    std::vector<std::pair<TensorInfo, StoredTensor>> infos;
    Bytes at = header;
    for (const TestTensor& tensor : tensors) {
      infos.push_back({{tensor.name, *dtype_from_name(tensor.dtype), tensor.shape}, {weights, at}});
      at += tensor.bytes.size();
    }
    std::ranges::sort(infos, {}, [](const auto& info) { return info.first.name; });
    for (const auto& [info, place] : infos) {
      manifest_.tensors.push_back(info);
      manifest_.places.push_back(place);
    }
  }

  std::uint32_t index_of(const std::string& name) const {
    return static_cast<std::uint32_t>(
        std::ranges::lower_bound(manifest_.tensors, name, {}, &TensorInfo::name) - manifest_.tensors.begin());
  }

  void add_dense(const TestTensor& tensor) {
    dense_.resize(round_up(dense_.size(), kRegionAlignment));
    const std::uint32_t index = index_of(tensor.name);
    manifest_.pieces.push_back({.tensor = index,
                                .file = 0,
                                .first = 0,
                                .count = manifest_.tensors[index].elements(),
                                .encoding = Encoding::kRaw,
                                .bytes = {dense_.size(), tensor.bytes.size()},
                                .xxh3 = xxh3(bytes_of(tensor.bytes))});
    dense_ += tensor.bytes;
  }

  void add_expert(const FormatExpert& expert) {
    experts_.resize(round_up(experts_.size(), kRegionAlignment));
    ExpertEntry entry;
    entry.layer = expert.layer;
    entry.index = expert.index;
    entry.file = 1;
    entry.first_piece = static_cast<std::uint32_t>(manifest_.pieces.size());
    entry.piece_count = static_cast<std::uint32_t>(expert.matrices.size());
    entry.full.offset = experts_.size();
    for (const FormatMatrix& matrix : expert.matrices) add_matrix(matrix);
    entry.full.length = experts_.size() - entry.full.offset;
    manifest_.experts.push_back(entry);
  }

  void add_matrix(const FormatMatrix& matrix) {
    PieceEntry piece;
    piece.tensor = index_of(matrix.planes[0].name);
    piece.file = 1;
    piece.count = matrix.shape.elements();
    piece.encoding = Encoding::kFormat;
    piece.tiles = {matrix.shape.rows, matrix.shape.columns};
    piece.format = matrix.format;
    piece.first_chunk = static_cast<std::uint32_t>(manifest_.chunks.size());
    piece.chunk_count = static_cast<std::uint32_t>(matrix.planes.size());
    for (const TestTensor& plane : matrix.planes) {
      experts_.resize(round_up(experts_.size(), kPieceAlignment));
      const std::uint32_t tensor = index_of(plane.name);
      manifest_.chunks.push_back({.bytes = {experts_.size(), plane.bytes.size()},
                                  .first = 0,
                                  .count = manifest_.tensors[tensor].elements(),
                                  .xxh3 = xxh3(bytes_of(plane.bytes)),
                                  .coded = false,
                                  .tensor = tensor});
      experts_ += plane.bytes;
    }
    manifest_.pieces.push_back(piece);
  }

  const std::string source_, store_;
  Manifest manifest_;
  std::string dense_, experts_;  // the data files
};

// Writes the store of a model, and the directory that it might have been packed from. Returns its manifest.
inline Manifest write_format_store(const std::string& source, const std::string& store,
                                   const FormatModel& model,
                                   std::span<const codec::MatrixFormat* const> more_formats = {}) {
  return FormatStoreWriter(source, store).write(model, more_formats);
}

// The same of one expert beside one dense tensor.
inline Manifest write_format_store(const std::string& source, const std::string& store,
                                   const std::vector<FormatMatrix>& matrices,
                                   std::span<const codec::MatrixFormat* const> more_formats = {}) {
  const FormatModel model{{{"norm", "F32", {10}, random_bytes(40, 8)}}, {{0, 0, matrices}}, ""};
  return write_format_store(source, store, model, more_formats);
}

}  // namespace sluice::store::testing
