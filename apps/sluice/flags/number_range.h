// Range checks for the numbers of flags, while the command line is read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/setting.h"
#include "flags/command_line.h"

namespace sluice::app {

// For flag->check(). Error(kUsage) that names the flag, for text that is no whole number from `least` to
// `most`.
FlagCheck whole_number(Setting setting, std::uint64_t least, std::uint64_t most);

// The value, if it is in the range. Error(kUsage) naming `setting`.
std::size_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, Setting setting);

}  // namespace sluice::app
