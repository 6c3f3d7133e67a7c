#include "emulation/tile_cases-inl.h"

namespace sluice::emulation {

const TileCases kRealTiles = {kTileCases, sizeof(kTileCases) / sizeof(TileCase)};

}  // namespace sluice::emulation
