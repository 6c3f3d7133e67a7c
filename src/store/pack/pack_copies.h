// Copies what a pack takes over unchanged from its source: what of the weight files belongs to no tensor, and
// all other files.
#pragma once

#include <functional>

#include "base/bytes.h"
#include "store/manifest.h"
#include "store/pack/journal.h"
#include "store/pack/pack_job.h"
#include "store/pack/partial_directory.h"

namespace sluice::store {

// Writes headers.bin, and the place of each file's bytes in it into `manifest`.
void copy_headers(const PackJob& job, const PartialDirectory& partial, Manifest& manifest);

// Copies the files for which `manifest` has no SHA-256 into files/, durably, with a journal record for each.
// Calls `on_bytes` with the size of every copied part; exceptions from it reach the caller.
void copy_files(const PackJob& job, const PartialDirectory& partial, Manifest& manifest,
                JournalWriter& journal, const std::function<void(Bytes)>& on_bytes);

}  // namespace sluice::store
