// The names by which a command line calls settings.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"

namespace sluice::app {

// As setting_names(), but a setting with two flags is called by the one that is written among the words of
// the command line, so that an error names what the user sees there.
SettingNames written_names(const std::vector<std::string>& words);

}  // namespace sluice::app
