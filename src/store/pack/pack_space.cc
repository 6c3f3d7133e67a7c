#include "store/pack/pack_space.h"

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

}  // namespace sluice::store
