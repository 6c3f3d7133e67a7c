// `--io mmap`: reads served by copying from a mapping, for comparison with what mmap-based programs do.
#pragma once

#include <memory>

#include "base/disk.h"

namespace sluice::fetch {

// Reads are done in submit(), by page faults of the calling thread; wait() hands the completions out. A file that
// shrinks under the mapping would raise SIGBUS, so the size is checked before every copy.
std::unique_ptr<DiskReader> make_mmap_reader();

}  // namespace sluice::fetch
