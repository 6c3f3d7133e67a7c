// Two sizes as an error shows them.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice {

// "22.89 MiB" and "22.50 MiB". Where two different sizes would read the same, the text adds their bytes:
// "22.89 MiB (24001536 bytes)".
struct ComparedBytes {
  std::string expected, found;
};
ComparedBytes compared_bytes(Bytes expected, Bytes found);

}  // namespace sluice
