// Where a pack begins: at the first unit, or where the journal of an unfinished store ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "store/journal.h"
#include "store/manifest.h"
#include "store/pack_job.h"
#include "store/partial_directory.h"

namespace sluice::store {

struct PackStart {
  std::unique_ptr<JournalWriter> journal;  // its first record is written
  std::size_t next_unit = 0;               // the first that earlier runs have not finished
  std::vector<std::uint32_t> dense;        // dense pieces of the manifest, in the order of writing
  Bytes done_bytes = 0;                    // of the source
};

// Takes over what the journal in `partial` says is done: pieces, experts and SHA-256s go into `manifest`,
// which is the job's when this is called. Without a valid first record all that lies there is removed, and
// the pack begins anew. Error(kInvalid) as check_identity(), for a journal that does not fit the job, and for
// a directory that something else has filled.
PackStart start_or_resume(const PackJob& job, PartialDirectory& partial, Manifest& manifest);

}  // namespace sluice::store
