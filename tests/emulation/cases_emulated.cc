#include "emulation/cases-inl.h"
#include "emulation/tile_cases-inl.h"

namespace sluice::emulation {

const Cases kEmulated = {kCases, sizeof(kCases) / sizeof(Case)};
const TileCases kEmulatedTiles = {kTileCases, sizeof(kTileCases) / sizeof(TileCase)};

}  // namespace sluice::emulation
