// Small JSON files that later programs put into a finished store (docs/store-format.md, section 5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice::store {

// "sidecar/NAME.json" of the store, if it is there, of that kind, and belongs to this store (its manifest's
// checksum). Error(kCorrupt) or (kInvalid) if it is damaged.
std::optional<Json> read_sidecar(const std::string& store, std::string_view name, std::string_view kind);

// Writes (replaces) it, whole or not at all. `body` is an object without the members "sidecar", "manifest",
// "kind" and "checksum"; `name` and `kind` are of a-z, 0-9, '_' and '-'.
void write_sidecar(const std::string& store, std::string_view name, std::string_view kind, const Json& body);

// Error unless `text` is a well-formed sidecar of the store whose manifest has this checksum.
void check_sidecar(std::string_view text, const std::string& name, std::uint64_t manifest_checksum);

}  // namespace sluice::store
