// What a pack needs, before it starts: space for what it will write, and memory beside the tables of its job.
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

// The least PackOptions::memory that holds each slice of the job by itself; as much again holds what a thread
// codes with and the scales of the largest unit, or the tables of the job and of its manifest, which count
// where there are very many small matrices.
Bytes least_memory(const PackJob& job);

// How many threads may code: those that were asked for, or fewer where what they code with would not fit in
// PackOptions::memory. At least one.
unsigned coding_threads(const PackJob& job);

}  // namespace sluice::store
