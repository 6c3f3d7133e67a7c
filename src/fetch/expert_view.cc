#include "fetch/expert_view.h"

#include "base/error.h"
#include "device/space.h"

namespace sluice::fetch {
namespace {

// As words, or as an expert has its planes that is stored whole.
codec::MatrixRef in_view(const ExpertLayout& layout, const PiecePlace& place, codec::MatrixShape shape,
                         const std::byte* view) {
  codec::MatrixRef matrix{place.view_format(), shape};
  for (std::size_t plane = 0; plane < place.base_planes; ++plane) {
    const Bytes at = layout.merged() ? place.view_place + place.view_plane(plane) : place.planes[plane].place;
    matrix.planes[plane] = device::host_space().address(view + at);
  }
  return matrix;
}

// Planes of the region `rest` are one run each, or the one that is a sequence of chunks.
codec::MatrixRef in_regions(const PiecePlace& place, codec::MatrixShape shape, const ExpertMemory& memory) {
  const device::HostSpace& space = device::host_space();
  SLUICE_CHECK(place.shape == shape, std::to_string(place.shape.columns));
  codec::MatrixRef matrix{place.format, shape};
  std::size_t plane = 0;
  for (const PlanePlace& base : place.base())
    matrix.planes[plane++] = space.address(memory.base + base.place);
  if (place.coded()) {
    matrix.planes[plane] = space.address(memory.rest);
    matrix.chunks = place.chunks;
  } else if (memory.rest == nullptr) {
    matrix.view = codec::SliceView::kLow;
  } else {
    for (const codec::PlaneChunk& rest : place.chunks)
      matrix.planes[plane++] = space.address(memory.rest + rest.place);
  }
  return matrix;
}

}  // namespace

ExpertView expert_view(const ExpertLayout& layout, std::size_t width, std::size_t hidden,
                       const ExpertMemory& memory) {
  const auto matrix = [&](std::size_t piece, codec::MatrixShape shape) {
    const PiecePlace& place = layout.pieces[piece];
    SLUICE_CHECK(place.elements == shape.elements(), std::to_string(place.elements));
    return memory.view != nullptr ? in_view(layout, place, shape, memory.view)
                                  : in_regions(place, shape, memory);
  };
  const codec::MatrixShape inner{width, hidden}, outer{hidden, width};
  const std::size_t up = layout.pieces.size() - 2;  // an expert without a gate has only two matrices
  return {up == 0 ? codec::MatrixRef{} : matrix(0, inner), matrix(up, inner), matrix(up + 1, outer)};
}

ExpertView PlacedExpert::view() const { return expert_view(*layout, width, hidden, memory); }

}  // namespace sluice::fetch
