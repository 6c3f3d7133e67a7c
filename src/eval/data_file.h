// The text of a file that may be compressed.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::eval {

// All of it; NAME.zst is decompressed. Error(kNotFound), (kIo), (kCorrupt); (kInvalid) if it has more than
// `most` bytes.
std::string read_data_file(const std::string& path, Bytes most);

}  // namespace sluice::eval
