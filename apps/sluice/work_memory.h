// --memory of the commands that turn a model into a store and back.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::app {

// Bytes that may be on their way at a time, of what --memory gives: half of what the process leaves of it as
// it is now; the rest is for codec contexts and more tables. Error(kUsage) if it is less than `work` ("pack",
// "unpack") can do with.
Bytes work_memory(const std::string& memory, const std::string& work);

}  // namespace sluice::app
