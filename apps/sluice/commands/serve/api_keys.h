// The keys of clients: of flags, of a file, and of the environment.
#pragma once

#include <string>
#include <vector>

#include "commands/serve/serve_flags.h"

namespace sluice::app {

// Error(kUsage) for an empty key, and for a file without one; errors of the file.
std::vector<std::string> api_keys(const ServeFlags& flags);

}  // namespace sluice::app
