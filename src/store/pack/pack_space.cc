#include "store/pack/pack_space.h"

namespace sluice::store {
namespace {

double piece_bytes(const PackJob& job, const PackUnit& unit, const UnitPiece& piece) {
  const auto count = static_cast<double>(piece.count);
  const double exponent_ratio = job.manifest.codec.name == "lz4" ? 0.5 : 0.3;
  switch (job.coding_of(unit, piece).encoding) {
    case Encoding::kRaw:
      return static_cast<double>(job.weights.tensors[piece.tensor].bytes_of(piece.count));
    case Encoding::kSplit:
      return count * (1 + exponent_ratio);
    case Encoding::kSliced:
      return count * (job.options.slices->high / 8.0 + 3.0 / codec::kCellColumns);
    case Encoding::kInt8:
      return count;
    case Encoding::kFormat:  // pack() makes no such pieces
      break;
  }
  return 0;
}

}  // namespace

Bytes least_space(const PackJob& job, const Manifest& manifest, std::size_t next_unit) {
  double need = 0;
  for (std::size_t i = next_unit; i < job.units.size(); ++i)
    for (const UnitPiece& piece : job.units[i].pieces) need += piece_bytes(job, job.units[i], piece);
  for (const StoredSource& source : manifest.sources) {
    if (!source.weights && source.sha256.empty()) need += static_cast<double>(source.size);
  }
  // Allows for padding, the manifest, and exponents that compress worse than these.
  return static_cast<Bytes>(need * 1.1);
}

}  // namespace sluice::store
