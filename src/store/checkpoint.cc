#include "store/checkpoint.h"

namespace sluice::store {

std::string_view family_name(Family family) {
  return family == Family::kRaw ? "raw" : family == Family::kSplit ? "split" : "sliced";
}

Family Checkpoint::family() const {
  return slices() ? Family::kSliced : codec() == "none" ? Family::kRaw : Family::kSplit;
}

}  // namespace sluice::store
