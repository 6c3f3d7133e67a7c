#include "engine/forward/packed_view.h"

namespace sluice::engine {

kernels::PackedWeight packed_view(const fetch::PiecePlace& place, const std::byte* words,
                                  const std::byte* exponents, std::vector<kernels::PackedChunk>& chunks) {
  const std::uint64_t places = place.tiles.group_places();
  chunks.clear();
  for (const fetch::ChunkPlace& chunk : place.chunks)
    chunks.push_back({{exponents + chunk.place, chunk.stored_bytes},
                      chunk.first_element / places,
                      chunk.elements / places,
                      chunk.coded});
  return {place.tiles, words + place.place, chunks};
}

}  // namespace sluice::engine
