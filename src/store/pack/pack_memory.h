// What a pack takes beside the tables of its job.
#pragma once

#include "base/bytes.h"
#include "store/pack/pack_job.h"

namespace sluice::store {

// The least PackOptions::memory that holds each slice of the job by itself; as much again holds what a thread
// codes with, and the scales of the largest unit.
Bytes least_memory(const PackJob& job);

// How many threads may code: those that were asked for, or fewer where what they code with would not fit in
// PackOptions::memory. At least one.
unsigned coding_threads(const PackJob& job);

}  // namespace sluice::store
