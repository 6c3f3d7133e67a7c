// Files that later programs put into a finished store (docs/store-format.md, section 5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "store/table_sidecar.h"

namespace sluice::store {

// "sidecar/NAME.json" of the store, if it is there, of that kind, and belongs to this store (its manifest's
// checksum). Error(kCorrupt) or (kInvalid) if it is damaged.
std::optional<Json> read_sidecar(const std::string& store, std::string_view name, std::string_view kind);

// Error(kIo) where write_sidecar() could not make a file, so that nobody works for nothing.
void check_takes_sidecars(const std::string& store);

// Writes (replaces) it, whole or not at all. `body` is an object without the members "sidecar", "manifest",
// "kind" and "checksum"; `name` and `kind` are of a-z, 0-9, '_' and '-'.
void write_sidecar(const std::string& store, std::string_view name, std::string_view kind, const Json& body);

// "sidecar/NAME.bin" of the store, if it is there, of that kind and version, and belongs to this store.
// Error(kCorrupt) or (kInvalid) if its head is damaged.
std::optional<TableSidecar> read_tables(const std::string& store, std::string_view name,
                                        const TableKind& kind);
// Writes (replaces) it, whole or not at all.
void write_tables(const std::string& store, std::string_view name, const TableKind& kind,
                  std::span<const NamedTable> tables);

// Whether a file of this name (relative to the store) may be one.
bool is_sidecar(std::string_view relative);
// Error unless the file is a well-formed and undamaged sidecar of the store whose manifest has this checksum.
void check_sidecar(const std::string& path, const std::string& name, std::uint64_t manifest_checksum);

}  // namespace sluice::store
