// For tests: a place in a JSON value by its path.
#pragma once

#include <charconv>
#include <string_view>

#include "base/json/json_value.h"

namespace sluice {

// The value at "/pools/0/size", made with all that leads to it where it is missing. Neither '/' nor '~' in
// keys.
inline Json& at_pointer(Json& root, std::string_view pointer) {
  Json* value = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view key = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(key.size());
    std::size_t index = 0;
    const bool numbered = value->is_array();
    if (numbered) std::from_chars(key.data(), key.data() + key.size(), index);
    value = numbered ? &(*value)[index] : &(*value)[key];
  }
  return *value;
}

}  // namespace sluice
