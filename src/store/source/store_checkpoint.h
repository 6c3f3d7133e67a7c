// A packed store as a Checkpoint (docs/store-format.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/checkpoint.h"
#include "store/manifest.h"

namespace sluice::store {

// Whether `path` is meant as a packed store: it holds a manifest that begins like ours, or our data files, or
// is named like a store.
bool looks_like_store(const std::string& path);

// Reads manifest.json of the store at `path`, parses and checks it, and compares the sizes of all other files
// with it (without reading them). Error(kNotFound), (kInvalid), (kUnsupported), (kCorrupt).
Manifest open_store(const std::string& path, std::span<const codec::MatrixFormat* const> more_formats = {});
// Error(kCorrupt) naming a file of the manifest that is missing or has another size.
void check_file_sizes(const std::string& path, const Manifest& manifest);
// The error for what an interrupted pack has left.
Error not_finished(const std::string& path);
// Error(kNotFound), (kInvalid) or (kCorrupt) that says what the store lacks.
void check_has_manifest(const std::string& path);
std::string read_manifest_text(const std::string& path);

// Error(kInvalid) if `path` looks like a packed store, (kUnsupported) if like a GGUF file, where a model
// directory is needed; the error gives the remedy, for a store that of its family.
void check_not_packed(const std::string& path);

// Opens a store as open_store(). Compares files of the source with their SHA-256 when they are asked for,
// weights when they are read.
std::unique_ptr<Checkpoint> open_store_checkpoint(
    const std::string& path, std::span<const codec::MatrixFormat* const> more_formats = {});

}  // namespace sluice::store
