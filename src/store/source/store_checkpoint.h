// A packed store as a Checkpoint (docs/store-format.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "store/checkpoint.h"
#include "store/manifest.h"
#include "store/source/gguf.h"

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

// Error(kInvalid) if `path` looks like a packed store where a model that is none is needed; the error gives
// the remedy, that of its family.
void check_not_packed(const std::string& path);
// Error(kUnsupported) if it looks like a GGUF file where a model directory is needed.
void check_not_gguf(const std::string& path);

// Where the head of a GGUF source lies, in headers.bin. `headers` must outlive the result.
GgufHead gguf_head(const InputFile& headers, const StoredSource& source);

// Opens a store as open_store(). Compares files of the source with their SHA-256 when they are asked for,
// weights when they are read.
std::unique_ptr<Checkpoint> open_store_checkpoint(
    const std::string& path, std::span<const codec::MatrixFormat* const> more_formats = {});

}  // namespace sluice::store
