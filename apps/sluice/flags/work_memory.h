// The memory of the commands that turn a model into a store and back.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::app {

// How many of the bytes of that memory may be in progress at a time: half of what the process leaves
// now; the rest is for codec contexts and more tables. Error(kUsage) if that is too little for `work`
// ("pack", "unpack").
Bytes work_memory(const std::string& memory, const std::string& work);

}  // namespace sluice::app
