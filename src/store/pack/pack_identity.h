// Decides whether two runs of `pack` are the same work, so that the second may resume the first.
#pragma once

#include <string>
#include <vector>

#include "store/source/source_directory.h"

namespace sluice::store {

struct PackIdentity {
  std::string options;                      // all options that change a byte of the store, as text
  std::string plan;                         // fingerprint of the units
  const SourceDirectory* source = nullptr;  // must outlive this
  std::vector<bool> weights;                // parallel to the source's files
};

// The first record of a journal (docs/store-format.md, section 6).
std::string identity_record(const PackIdentity& identity);

// Error(kInvalid) that says what differs, unless `record` is the record of `identity`, except for changed
// files other than weights: those are returned, and must be copied again. `partial` is the directory.
std::vector<std::string> check_identity(const std::string& record, const PackIdentity& identity,
                                        const std::string& partial);

// Whether neither size nor times of the file have changed.
bool same_version(const SourceFile& a, const SourceFile& b);

}  // namespace sluice::store
