// Reads the text of a file that may be compressed.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::eval {

// The whole text; decompresses NAME.zst. Error(kNotFound), (kIo), (kCorrupt); (kInvalid) if the text has more
// than `most` bytes.
std::string read_data_file(const std::string& path, Bytes most);

}  // namespace sluice::eval
