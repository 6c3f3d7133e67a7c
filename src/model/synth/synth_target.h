// Where a synthetic model is written.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::model {

// The directory that `path` is in.
std::string parent_of(const std::string& path);

// Error(kInvalid) if `path` exists, Error(kIo) if its disk has less room than `needed`.
void check_target(const std::string& path, Bytes needed);

}  // namespace sluice::model
