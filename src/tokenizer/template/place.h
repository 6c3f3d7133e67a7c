// A place in a template's source, and errors that name it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::tokenizer::jinja {

// Both count from 1, columns in characters.
struct Place {
  std::uint32_t line = 1, column = 1;
};

// Error(kInvalid) at "NAME, line L, column C".
Error template_error(std::string_view name, Place place, std::string_view message);

}  // namespace sluice::tokenizer::jinja
