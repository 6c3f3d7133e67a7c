// What a pack takes over from its source as it is: the headers of the weight files, and the files beside
// them.
#pragma once

#include <functional>

#include "base/bytes.h"
#include "store/journal.h"
#include "store/manifest.h"
#include "store/pack_job.h"
#include "store/partial_directory.h"

namespace sluice::store {

// Writes headers.bin, and where each header lies in it into `manifest`.
void copy_headers(const PackJob& job, const PartialDirectory& partial, Manifest& manifest);

// Copies the files that `manifest` has no SHA-256 of into files/, durably, with a record in the journal for
// each. `on_bytes` is called with the size of every part that is copied; what it throws goes on to the
// caller.
void copy_files(const PackJob& job, const PartialDirectory& partial, Manifest& manifest,
                JournalWriter& journal, const std::function<void(Bytes)>& on_bytes);

}  // namespace sluice::store
