// Rows of a table by their names.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/setting.h"

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
  std::string known;
  for (const Row& row : table) {
    if (is_named(row, name)) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(ErrorKind::kUsage, "unknown name")
      .in(setting)
      .expected("one of " + known)
      .found("\"" + std::string(name) + "\"");
}

}  // namespace sluice::experts
