// Reads of the mode mmap: served by copying from a mapping, for comparison with mmap-based programs.
#pragma once

#include <memory>

#include "base/files/disk.h"

namespace sluice::fetch {

// submit() does the reads, by page faults of the calling thread; wait() hands the completions out. A page
// that cannot be read completes with EIO: submit() catches the SIGBUS of its own copy (one thread of a
// process at a time).
std::unique_ptr<DiskReader> make_mmap_reader();

}  // namespace sluice::fetch
