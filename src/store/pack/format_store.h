// A packed store with matrices in formats, made by hand from docs/store-format.md: no source that pack()
// reads has such matrices. For tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codec/matrix_format.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/testing.h"

namespace sluice::store::testing {

// One matrix of the store's one expert; planes are tensors of the source, in the order of the format.
struct FormatMatrix {
  const codec::MatrixFormat* format = nullptr;
  codec::MatrixShape shape;
  std::vector<TestTensor> planes;
};

// Writes `source`/model.safetensors with a dense tensor and all planes, and the store. Returns its manifest.
inline Manifest write_format_store(const std::string& source, const std::string& store,
                                   const std::vector<FormatMatrix>& matrices,
                                   std::span<const codec::MatrixFormat* const> more_formats = {}) {
  std::vector<TestTensor> tensors = {{"norm", "F32", {10}, random_bytes(40, 8)}};
  for (const FormatMatrix& matrix : matrices)
    tensors.insert(tensors.end(), matrix.planes.begin(), matrix.planes.end());
  const std::string file = safetensors_bytes(tensors);
  write_file(source + "/model.safetensors", file);
  const auto bytes_of = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const auto sha256 = [&](const std::string& text) {
    Sha256Stream sum;
    sum.update(bytes_of(text));
    return sum.hex_digest();
  };

  Manifest m;
  m.architecture = "tiny";
  m.more_formats = more_formats;
  Bytes header = file.size();
  for (const TestTensor& tensor : tensors) header -= tensor.bytes.size();
  m.sources = {{"model.safetensors",
                file.size(),
                sha256(file),
                true,
                {0, header},
                xxh3(bytes_of(file.substr(0, header)))}};
  std::vector<std::pair<TensorInfo, StoredTensor>> infos;
  Bytes at = header;
  for (const TestTensor& tensor : tensors) {
    infos.push_back({{tensor.name, *dtype_from_name(tensor.dtype), tensor.shape}, {0, at}});
    at += tensor.bytes.size();
  }
  std::ranges::sort(infos, {}, [](const auto& info) { return info.first.name; });
  for (const auto& [info, place] : infos) {
    m.tensors.push_back(info);
    m.places.push_back(place);
  }
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::uint32_t>(std::ranges::find(m.tensors, name, &TensorInfo::name) -
                                      m.tensors.begin());
  };

  std::string dense = tensors[0].bytes, experts;
  m.pieces.push_back({.tensor = index_of("norm"),
                      .file = 0,
                      .first = 0,
                      .count = 10,
                      .encoding = Encoding::kRaw,
                      .bytes = {0, 40},
                      .xxh3 = xxh3(bytes_of(dense))});
  m.dense_pieces = 1;
  ExpertEntry expert;
  expert.file = 1;
  expert.first_piece = 1;
  for (const FormatMatrix& matrix : matrices) {
    PieceEntry piece;
    piece.tensor = index_of(matrix.planes[0].name);
    piece.file = 1;
    piece.count = matrix.shape.elements();
    piece.encoding = Encoding::kFormat;
    piece.tiles = {matrix.shape.rows, matrix.shape.columns};
    piece.format = matrix.format;
    piece.first_chunk = static_cast<std::uint32_t>(m.chunks.size());
    piece.chunk_count = static_cast<std::uint32_t>(matrix.planes.size());
    for (const TestTensor& plane : matrix.planes) {
      experts.resize(round_up(experts.size(), kPieceAlignment));
      const std::uint32_t tensor = index_of(plane.name);
      m.chunks.push_back({.bytes = {experts.size(), plane.bytes.size()},
                          .first = 0,
                          .count = m.tensors[tensor].elements(),
                          .xxh3 = xxh3(bytes_of(plane.bytes)),
                          .coded = false,
                          .tensor = tensor});
      experts += plane.bytes;
    }
    m.pieces.push_back(piece);
    expert.piece_count += 1;
  }
  expert.full = {0, experts.size()};
  m.experts.push_back(expert);
  dense.resize(kRegionAlignment);
  experts.resize(round_up(experts.size(), kRegionAlignment));
  m.data_files = {{"dense.bin", dense.size()}, {expert_file_name(0), experts.size()}};
  write_file(store + "/headers.bin", file.substr(0, header));
  write_file(store + "/dense.bin", dense);
  write_file(store + "/" + expert_file_name(0), experts);
  write_file(store + "/manifest.json", write_manifest(m));
  return m;
}

}  // namespace sluice::store::testing
