// State S from F alone (SPEC §1.7): takes the sign+mantissa planes out of the words, without a read.
#pragma once

#include <cstddef>
#include <vector>

#include "fetch/expert_layout.h"

namespace sluice::fetch {

// Whether the planes never reach words that are still needed, so that they can be made in place. (In tiles,
// narrow matrices are padded to more than their size.)
bool planes_fit_in_place(const ExpertLayout& layout);

// Extracts the planes of a split expert from a view with all its words, in the form in which its region
// `words` has them on disk. `view` and `words` may be the same memory if planes_fit_in_place(), else they
// must not overlap. `scratch`: a few KiB, kept by the caller so that a steady state allocates nothing.
void extract_planes(const ExpertLayout& layout, const std::byte* view, std::byte* words,
                    std::vector<std::byte>& scratch);

}  // namespace sluice::fetch
