#include "fetch/extract_planes.h"

#include <algorithm>

#include "base/error.h"
#include "codec/matrix_format.h"
#include "codec/native/tiles.h"

namespace sluice::fetch {
namespace {

void extract_flat(const PiecePlace& piece, const std::byte* words, std::byte* plane) {
  for (std::uint64_t i = 0; i < piece.elements; ++i) {  // plane + i never passes words + 2 i
    const unsigned low = std::to_integer<unsigned>(words[2 * i]),
                   high = std::to_integer<unsigned>(words[2 * i + 1]);
    plane[i] = static_cast<std::byte>((high & 0x80u) | (low & 0x7fu));
  }
}

// Works group by group, each from a copy, because its tiles may overlap its own words.
void extract_tiles(const codec::TileShape& tiles, const std::byte* words, std::byte* plane,
                   std::vector<std::byte>& copy) {
  for (std::uint64_t g = 0; g < tiles.groups(); ++g) {
    const auto [row, rows] = codec::tile_rows(tiles, g * tiles.group_places(), tiles.group_places());
    const std::byte* const first = words + codec::kFormatBf16.bytes({row, tiles.columns});
    copy.assign(first, first + codec::kFormatBf16.bytes({rows.rows, rows.columns}));
    codec::sign_mantissa_tiles(copy, rows, {plane + g * tiles.group_places(), tiles.group_places()});
  }
}

}  // namespace

bool planes_fit_in_place(const ExpertLayout& layout) {
  return layout.base.bytes <= layout.view_bytes &&
         std::ranges::all_of(layout.pieces, [](const PiecePlace& piece) {
           const codec::TileShape tiles = piece.tiles();
           const Bytes place = piece.planes[0].place;
           return place <= piece.view_place &&
                  (!piece.tiled() || (64 * tiles.blocks() <= codec::kFormatBf16.bytes({1, tiles.columns}) &&
                                      place + tiles.places() <= piece.view_place + piece.view_bytes()));
         });
}

void extract_planes(const ExpertLayout& layout, const std::byte* view, std::byte* words,
                    std::vector<std::byte>& scratch) {
  SLUICE_CHECK(layout.merged());
  for (const PiecePlace& piece : layout.pieces) {
    SLUICE_CHECK(piece.coded());
    if (piece.tiled()) {
      extract_tiles(piece.tiles(), view + piece.view_place, words + piece.planes[0].place, scratch);
    } else {
      extract_flat(piece, view + piece.view_place, words + piece.planes[0].place);
    }
  }
}

}  // namespace sluice::fetch
