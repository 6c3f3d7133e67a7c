#include "base/append_format.h"

#include <fmt/format.h>

#include <iterator>

namespace sluice {

void append_formatted(std::string& out, fmt::string_view format, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(out), format, arguments);
}

}  // namespace sluice
