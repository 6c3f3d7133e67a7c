// Range checks for the numbers of flags, while the command line is read.
#pragma once

#include <cstdint>

#include "base/setting.h"
#include "flags/command_line.h"

namespace sluice::app {

// For flag->check(). Error(kUsage) that names the flag, for text that is no whole number from `least` to
// `most`.
FlagCheck whole_number(Setting setting, std::uint64_t least, std::uint64_t most);

}  // namespace sluice::app
