#include "fetch/expert_view.h"

#include "base/error.h"
#include "device/space.h"

namespace sluice::fetch {
namespace {

// As words, or as an expert has its planes that is stored whole.
codec::MatrixRef in_view(const ExpertLayout& layout, const PiecePlace& place, codec::MatrixShape shape,
                         device::Address view) {
  codec::MatrixRef matrix{place.view_format(), shape};
  for (std::size_t plane = 0; plane < place.base_planes; ++plane) {
    const Bytes at = layout.merged() ? place.view_place + place.view_plane(plane) : place.planes[plane].place;
    matrix.planes[plane] = view + at;
  }
  return matrix;
}

// Planes of the region `rest` are one run each, or the one that is a sequence of chunks.
codec::MatrixRef in_regions(const PiecePlace& place, codec::MatrixShape shape, const ExpertPlaces& places) {
  SLUICE_CHECK(place.shape == shape, std::to_string(place.shape.columns));
  codec::MatrixRef matrix{place.format, shape};
  std::size_t plane = 0;
  for (const PlanePlace& base : place.base()) matrix.planes[plane++] = places.base + base.place;
  if (place.coded()) {
    matrix.planes[plane] = places.rest;
    matrix.chunks = place.chunks;
  } else if (!places.rest) {
    matrix.view = codec::SliceView::kLow;
  } else {
    for (const codec::PlaneChunk& rest : place.chunks) matrix.planes[plane++] = places.rest + rest.place;
  }
  return matrix;
}

}  // namespace

ExpertView expert_view(const ExpertLayout& layout, std::size_t hidden, const ExpertPlaces& places) {
  const auto matrix = [&](std::size_t piece, bool inner) {
    const PiecePlace& place = layout.pieces[piece];
    const std::uint64_t width = place.elements / hidden;
    SLUICE_CHECK(place.elements == width * hidden, std::to_string(place.elements));
    const codec::MatrixShape shape =
        inner ? codec::MatrixShape{width, hidden} : codec::MatrixShape{hidden, width};
    return places.view ? in_view(layout, place, shape, places.view) : in_regions(place, shape, places);
  };
  const std::size_t up = layout.pieces.size() - 2;  // an expert without a gate has only two matrices
  return {up == 0 ? codec::MatrixRef{} : matrix(0, true), matrix(up, true), matrix(up + 1, false)};
}

ExpertView expert_view(const ExpertLayout& layout, std::size_t hidden, const ExpertMemory& memory) {
  const device::HostSpace& space = device::host_space();
  return expert_view(
      layout, hidden,
      ExpertPlaces{space.address(memory.view), space.address(memory.base), space.address(memory.rest)});
}

ExpertView PlacedExpert::view() const { return expert_view(*layout, hidden, memory); }

}  // namespace sluice::fetch
