#include "fetch/dense/piece_groups.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "codec/native/tiles.h"
#include "device/host_buffer.h"
#include "fetch/checked_hash.h"
#include "fetch/dense/layout_reads.h"

namespace sluice::fetch {

PieceGroups::PieceGroups(const store::StoredPiece& piece, std::uint64_t most) : piece_(piece) {
  SLUICE_CHECK(piece.coded());
  std::uint64_t elements = 0;
  for (std::size_t chunk = 0; chunk < piece.exponents.size(); ++chunk) {
    if (begins_.empty() || elements + piece.exponents[chunk].elements > most) {
      begins_.push_back(chunk);
      elements = 0;
    }
    elements += piece.exponents[chunk].elements;
  }
}

PieceGroup PieceGroups::group(std::size_t number) const {
  const std::size_t begin = begins_[number],
                    end = number + 1 < count() ? begins_[number + 1] : piece_.exponents.size();
  const store::ExponentChunk& last = piece_.exponents[end - 1];
  PieceGroup group{.first_chunk = begin, .first_place = piece_.exponents[begin].first_element, .piece = {}};
  group.first_word = group.first_place;
  const std::uint64_t plane = last.first_element + last.elements - group.first_place;
  store::StoredPiece& part = group.piece;
  part.dtype = piece_.dtype;
  part.format = piece_.format;
  part.shape = {1, plane};
  if (piece_.tiled()) {
    const codec::TileRows rows = codec::tile_rows(piece_.tiles(), group.first_place, plane);
    part.shape = {rows.shape.rows, rows.shape.columns};
    group.first_word = rows.first_row * rows.shape.columns;
  }
  part.elements = part.shape.elements();
  part.planes[0].extent = {piece_.first().file, piece_.first().offset + group.first_place, plane};
  part.exponents.assign(piece_.exponents.begin() + static_cast<std::ptrdiff_t>(begin),
                        piece_.exponents.begin() + static_cast<std::ptrdiff_t>(end));
  for (store::ExponentChunk& chunk : part.exponents) chunk.first_element -= group.first_place;
  return group;
}

Bytes PieceGroups::staging_bytes() const {
  Bytes most = 0;
  for (std::size_t i = 0; i < count(); ++i)
    most = std::max(most, lay_out(std::vector{group(i).piece}).read_bytes);
  return halves_bytes(most, count());
}

std::uint64_t PieceGroups::most_words() const {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count(); ++i) most = std::max(most, group(i).piece.elements);
  return most;
}

void PieceGroups::read(
    WeightFiles& files, device::Accountant& accountant,
    const std::function<void(const PieceGroup&, const PieceLayout&, const std::byte*)>& handle) const {
  const device::HostBuffer halves(accountant, device::Account::kStaging, staging_bytes());
  Xxh3Stream hash;
  read_in_turns(
      files, halves, count(), [&](std::size_t i) { return lay_out(std::vector{group(i).piece}); },
      [&](std::size_t i, const PieceLayout& layout, const std::byte* read) {
        const PlanePlace& plane = layout.pieces[0].planes[0];
        hash.update({read + plane.place, plane.bytes});
        handle(group(i), layout, read);
      });
  const store::StoredPlane& plane = piece_.planes[0];
  if (plane.xxh3 && hash.digest() != *plane.xxh3)
    throw_hash_mismatch(plane.extent.length, *plane.xxh3, hash.digest(), files.path(plane.extent.file),
                        plane.extent.offset);
}

}  // namespace sluice::fetch
