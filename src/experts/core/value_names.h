// Finds values of an enumeration by their names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::experts {

// `names`: by value, from 0 on. Error(kUsage) that names the setting and lists the known names.
template <class Value, std::size_t n>
Value value_named(Setting setting, const std::string_view (&names)[n], std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != std::end(names)) return static_cast<Value>(found - std::begin(names));
  throw unknown_name(setting, name, {std::begin(names), std::end(names)});
}

}  // namespace sluice::experts
