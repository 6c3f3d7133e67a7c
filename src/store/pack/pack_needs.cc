#include "store/pack/pack_needs.h"

#include <algorithm>

#include "base/machine/thread_pool.h"
#include "codec/matrix_format.h"
#include "store/pack/pack_coder.h"
#include "store/pack/source_hasher.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

// Bytes as the format of the piece has them, exponents by experience.
double piece_bytes(const PackJob& job, const PieceEntry& piece) {
  const codec::MatrixFormat* const format = matrix_of(job.manifest, piece).format;
  double bytes = static_cast<double>(plane_bytes(job.manifest, piece, 0));
  for (std::size_t plane = 1; format != nullptr && plane < format->plane_count(); ++plane) {
    const double exponent_ratio = job.manifest.codec.name == "lz4" ? 0.5 : 0.3;
    bytes += format->planes[plane].bytes == nullptr
                 ? exponent_ratio * static_cast<double>(piece.count)
                 : static_cast<double>(plane_bytes(job.manifest, piece, plane));
  }
  return bytes;
}

Bytes context_bytes(const PackJob& job) {
  return job.codec == nullptr ? 0 : job.codec->encode_context_bytes();
}

// A unit's scales and zero points wait until its codes are written (UnitWriter).
Bytes waiting_bytes(const PackJob& job) {
  Bytes most = 0;
  for (const PackUnit& unit : job.units) {
    Bytes bytes = 0;
    for (const UnitPiece& piece : unit.pieces) {
      const PieceEntry entry = job.coding_of(unit, piece);
      if (!encoding_of(entry).rounded) continue;
      const codec::CellShape shape{entry.tiles.rows, entry.tiles.columns};
      bytes += shape.cells() * 3 * codec::kStripRows;  // a scale of 2 bytes and a zero point for each row
    }
    most = std::max(most, bytes);
  }
  return most;
}

Bytes tensor_bytes(const std::vector<TensorInfo>& tensors) {
  Bytes bytes = 0;
  for (const TensorInfo& tensor : tensors)
    bytes += sizeof(tensor) + tensor.name.size() + tensor.shape.size() * sizeof(tensor.shape[0]);
  return bytes;
}

// Memory of the job, of the manifest as it is made and once more as it is read for the tokenizer, and of its
// text, for `slices` slices, each of which may have a run of its piece.
Bytes table_bytes(const PackJob& job, std::uint64_t slices) {
  constexpr Bytes kPieceText = 160;  // the text of a piece with one run, by experience
  const Bytes tensors = tensor_bytes(job.source.weights.tensors);
  Bytes pieces = 0, experts = 0;
  for (const PackUnit& unit : job.units) {
    pieces += unit.pieces.size();
    experts += unit.is_expert ? 1 : 0;
  }
  const Bytes manifest =
      tensors + pieces * sizeof(PieceEntry) + slices * sizeof(StoredChunk) + experts * sizeof(ExpertEntry);
  return job.units.size() * sizeof(PackUnit) + pieces * sizeof(UnitPiece) + 2 * tensors + 2 * manifest +
         std::max(pieces, slices) * kPieceText;
}

}  // namespace

Bytes least_space(const PackJob& job, const Manifest& manifest, std::size_t next_unit) {
  double need = 0;
  for (std::size_t i = next_unit; i < job.units.size(); ++i)
    for (const UnitPiece& piece : job.units[i].pieces)
      need += piece_bytes(job, job.coding_of(job.units[i], piece));
  for (const StoredSource& source : manifest.sources) {
    if (!source.weights && source.sha256.empty()) need += static_cast<double>(source.size);
  }
  // Allows for padding between pieces, the manifest, and exponents that compress worse than these.
  return static_cast<Bytes>(need * 1.1);
}

Bytes least_memory(const PackJob& job) {
  PackSlices slices(job.source.weights, job.units, job.coding, 0);
  Bytes most = 0;
  std::uint64_t count = 0;
  for (CodedSlice slice; slices.next(slice); ++count) most = std::max(most, slice.memory());
  return std::max(
      {most, SourceHasher::kMemory + context_bytes(job) + waiting_bytes(job), table_bytes(job, count)});
}

unsigned coding_threads(const PackJob& job) {
  const unsigned asked = job.options.threads == 0 ? usable_cpus() : job.options.threads;
  const Bytes each = context_bytes(job), beside = SourceHasher::kMemory + waiting_bytes(job);
  if (each == 0) return asked;
  const Bytes room = job.options.memory - std::min(job.options.memory, beside);
  return static_cast<unsigned>(std::clamp<Bytes>(room / each, 1, asked));
}

}  // namespace sluice::store
