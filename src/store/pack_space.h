// How much a pack will write, before it does.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "store/manifest.h"
#include "store/pack_job.h"

namespace sluice::store {

// What units from `next_unit` on, and files that `manifest` has no SHA-256 of, take in the store: a guess
// from below, so that a pack that may fit is not refused; one that fills the disk after all can be resumed.
Bytes least_space(const PackJob& job, const Manifest& manifest, std::size_t next_unit);

}  // namespace sluice::store
