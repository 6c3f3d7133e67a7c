// Slices as a flag names them.
#pragma once

#include <string>
#include <vector>

#include "codec/slices/slice_bits.h"

namespace sluice::app {

std::vector<std::string> slice_bits_names();  // "8/4" …
// Parses "8/4". Error(kUsage) for bits that no store has.
codec::SliceBits slice_bits_flag(const std::string& text);

}  // namespace sluice::app
