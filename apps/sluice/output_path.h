// Where a result is to be written, looked at before the work begins.
#pragma once

#include <string>

namespace sluice::app {

// Error naming `path` or its directory if a regular file cannot be made there (or replaced).
void check_output_path(const std::string& path);

}  // namespace sluice::app
