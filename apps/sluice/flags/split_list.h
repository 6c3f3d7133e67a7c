// Values of flags that take lists.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"

namespace sluice::app {

// Splits "a,b,c". Error(kUsage) naming the setting for an empty entry.
std::vector<std::string> split_list(const std::string& list, Setting setting);

}  // namespace sluice::app
