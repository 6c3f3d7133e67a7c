// An error of the engine, as a client may read it.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::serve {

// File, byte, expected and found, without the folder of the file; settings by their names in JSON.
std::string client_message(const Error& error);

}  // namespace sluice::serve
