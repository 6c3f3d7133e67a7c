// Shows file content in a message: quoted, shortened, and only printable ASCII, so that it cannot steer a
// terminal.
#pragma once

#include <string>
#include <string_view>

namespace sluice::tokenizer {

std::string printable(std::string_view text);

}  // namespace sluice::tokenizer
