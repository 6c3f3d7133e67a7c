// Rows of a table by their names.
#pragma once

#include <span>
#include <string_view>

#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::experts {

// Whether `row` is meant by `name`: its own, or an older one, if rows of the table can have one.
template <class Row>
constexpr bool is_named(const Row& row, std::string_view name) {
  if (row.name == name) return true;
  if constexpr (requires { row.alias; }) return !row.alias.empty() && row.alias == name;
  return false;
}

// Error(kUsage) that lists the known names.
template <class Row>
const Row& find_row(std::span<const Row> table, Setting setting, std::string_view name) {
  for (const Row& row : table)
    if (is_named(row, name)) return row;
  throw unknown_name(setting, name, names_in(table));
}

}  // namespace sluice::experts
