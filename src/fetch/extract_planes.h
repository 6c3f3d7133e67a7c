// State S from F alone (SPEC §1.7): the sign+mantissa planes are taken out of the words, without a read.
#pragma once

#include <cstddef>
#include <vector>

#include "fetch/expert_layout.h"

namespace sluice::fetch {

// True if the planes never reach words that are still needed, so that they can be made where the words lie.
// (In tiles, narrow matrices are padded to more than they were.)
bool planes_fit_in_place(const ExpertLayout& layout);

// The planes of a split expert as its region `words` has them on disk, from a view with all its words. `view`
// and `words` may be the same memory if planes_fit_in_place(), else they do not overlap. `scratch`: a few
// KiB, kept by the caller so that a steady state allocates nothing.
void extract_planes(const ExpertLayout& layout, const std::byte* view, std::byte* words,
                    std::vector<std::byte>& scratch);

}  // namespace sluice::fetch
