// A packed store as a Checkpoint (docs/store-format.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/checkpoint.h"
#include "store/manifest.h"

namespace sluice::store {

// Whether `path` is meant as a packed store: it holds a manifest that begins as ours do, or our data files,
// or is named like a store.
bool looks_like_store(const std::string& path);

// manifest.json of the store at `path`, parsed and checked, and the sizes of all its other files compared
// with it (nothing of them is read). Error(kNotFound), (kInvalid), (kUnsupported), (kCorrupt).
Manifest open_store(const std::string& path);
// Error(kCorrupt) naming a file that the manifest speaks of and that the directory lacks, or has in another
// size.
void check_file_sizes(const std::string& path, const Manifest& manifest);
// Of what an interrupted pack has left.
Error not_finished(const std::string& path);
// Error(kNotFound), (kInvalid) or (kCorrupt) that says what the store lacks.
void check_has_manifest(const std::string& path);
std::string read_manifest_text(const std::string& path);

// Error(kInvalid) if `path` looks like a packed store, where the directory of a model is needed: it says what
// helps for a store of its family.
void check_not_packed(const std::string& path);

// The same. Files of the source are compared with their SHA-256 where they are asked for, weights as they are
// read.
std::unique_ptr<Checkpoint> open_store_checkpoint(const std::string& path);

}  // namespace sluice::store
