// Estimates how much a pack will write before it starts.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "store/manifest.h"
#include "store/pack/pack_job.h"

namespace sluice::store {

// Bytes in the store for the units from `next_unit` on and for files without a SHA-256 in `manifest`: an
// estimate from below, so that a pack that may fit is never refused; a pack that fills the disk after all can
// be resumed.
Bytes least_space(const PackJob& job, const Manifest& manifest, std::size_t next_unit);

}  // namespace sluice::store
