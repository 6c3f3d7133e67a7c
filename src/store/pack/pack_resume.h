// Finds where a pack begins: at the first unit, or where the journal of an unfinished store ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "store/manifest.h"
#include "store/pack/journal.h"
#include "store/pack/pack_job.h"
#include "store/pack/partial_directory.h"

namespace sluice::store {

struct PackStart {
  std::unique_ptr<JournalWriter> journal;  // with its first record written
  std::size_t next_unit = 0;               // the first unit that earlier runs have not finished
  std::vector<std::uint32_t> dense;        // dense pieces of the manifest, in the order of writing
  Bytes done_bytes = 0;                    // bytes of the source
};

// Takes over the work that the journal in `partial` lists: pieces, experts and SHA-256s go into `manifest`,
// which is the job's manifest at the call. Without a valid first record, removes all files there, and packing
// begins anew. Error(kInvalid) as check_identity(), for a journal that does not fit the job, and for a
// directory that another program has filled.
PackStart start_or_resume(const PackJob& job, PartialDirectory& partial, Manifest& manifest);

}  // namespace sluice::store
