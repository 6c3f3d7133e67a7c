// Finds values of an enumeration by their names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::experts {

// `names`: by value, from 0 on. Error(kUsage) that names the setting and lists the known names.
template <class Value, std::size_t n>
Value value_named(Setting setting, const std::string_view (&names)[n], std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != std::end(names)) return static_cast<Value>(found - std::begin(names));
  std::string known;
  for (std::string_view one : names) known.append(known.empty() ? "" : ", ").append(one);
  throw Error(ErrorKind::kUsage, "unknown name")
      .in(setting)
      .expected("one of " + known)
      .found(fmt::format("\"{}\"", name));
}

}  // namespace sluice::experts
