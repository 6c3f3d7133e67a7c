// Files that later programs add to a finished store (docs/store-format.md, section 5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "store/table_sidecar.h"

namespace sluice::store {

// Reads "sidecar/NAME.json" of the store; empty unless it exists, has this kind, and belongs to this store
// (its manifest's checksum). Error(kCorrupt) or (kInvalid) if it is damaged, (kIo) if it cannot be read.
std::optional<Json> read_sidecar(const std::string& store, std::string_view name, std::string_view kind);

// Error(kIo) if write_sidecar() could not create a file; call it before long work whose result needs a
// sidecar.
void check_takes_sidecars(const std::string& store);

// Writes or replaces a sidecar, whole or not at all. `body` is an object without the members "sidecar",
// "manifest", "kind" and "checksum"; `name` and `kind` consist of a-z, 0-9, '_' and '-'.
void write_sidecar(const std::string& store, std::string_view name, std::string_view kind, const Json& body);

// Opens "sidecar/NAME.bin" of the store; empty unless it exists and belongs to this store. Error(kCorrupt)
// or (kInvalid) if its head is damaged, (kUnsupported) if it is of another kind or version, (kIo) if it
// cannot be read.
std::optional<TableSidecar> read_tables(const std::string& store, std::string_view name,
                                        const TableKind& kind);
// Writes or replaces a table sidecar, whole or not at all.
void write_tables(const std::string& store, std::string_view name, const TableKind& kind,
                  std::span<const NamedTable> tables);

// Whether a file with this name (relative to the store) may be a sidecar.
bool is_sidecar(std::string_view relative);
// Error unless the file is a well-formed and undamaged sidecar of the store whose manifest has this checksum.
void check_sidecar(const std::string& path, const std::string& name, std::uint64_t manifest_checksum);

}  // namespace sluice::store
