// Text for one of the standard streams.
#pragma once

#include <string_view>

namespace sluice::app {

// Writes all of it, waiting where nobody has room for it yet. 0, or errno of the write that failed.
int write_text(int fd, std::string_view text);

}  // namespace sluice::app
