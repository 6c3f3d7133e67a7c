// Rows of numbers of equal length, as several functions of the lab read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/ask/fields.h"

namespace sluice::lab {

template <class T>
struct Rows {
  std::size_t count = 0, columns = 0;
  std::vector<T> values;  // (count, columns)
  std::span<const T> row(std::size_t index) const {
    return std::span(values).subspan(index * columns, columns);
  }
};

// `value` at `place`, an array of arrays of numbers in [min, max]. columns: the length that each row must
// have; empty: that of the first. Error(kInvalid) that names the row or the number.
Rows<double> number_rows_at(const JsonObject& line, const std::string& place, const Json& value, double min,
                            double max, std::optional<std::size_t> columns = {});
// The field, likewise.
Rows<double> number_rows(const JsonObject& line, std::string_view key, double min, double max,
                         std::optional<std::size_t> columns = {});
Rows<std::int64_t> integer_rows(const JsonObject& line, std::string_view key, std::int64_t min,
                                std::int64_t max, std::optional<std::size_t> columns = {});

}  // namespace sluice::lab
