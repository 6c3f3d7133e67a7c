#include "lab/ask/rows.h"

namespace sluice::lab {
namespace {

std::string at(const std::string& place, std::size_t index) {
  return place + "[" + std::to_string(index) + "]";
}

template <class T, class Read>
Rows<T> rows_at(const JsonObject& line, const std::string& place, const Json& value,
                std::optional<std::size_t> columns, Read&& read) {
  if (!value.is_array()) fail_at(line, place, "an array of rows of numbers", value);
  Rows<T> rows;
  for (const Json& row : value) {
    const std::string here = at(place, rows.count);
    if (!row.is_array()) fail_at(line, here, "a row of numbers", row);
    if (!columns) columns = row.size();
    if (row.size() != *columns) fail_at(line, here, std::to_string(*columns) + " numbers", row.size());
    for (std::size_t i = 0; i < row.size(); ++i) rows.values.push_back(read(at(here, i), row[i]));
    ++rows.count;
  }
  rows.columns = columns.value_or(0);
  return rows;
}

}  // namespace

Rows<double> number_rows_at(const JsonObject& line, const std::string& place, const Json& value, double min,
                            double max, std::optional<std::size_t> columns) {
  return rows_at<double>(line, place, value, columns, [&](const std::string& here, const Json& one) {
    return number_at(line, here, one, min, max);
  });
}

Rows<double> number_rows(const JsonObject& line, std::string_view key, double min, double max,
                         std::optional<std::size_t> columns) {
  return number_rows_at(line, std::string(key), array_of(line, key, "an array of rows of numbers"), min, max,
                        columns);
}

Rows<std::int64_t> integer_rows(const JsonObject& line, std::string_view key, std::int64_t min,
                                std::int64_t max, std::optional<std::size_t> columns) {
  return rows_at<std::int64_t>(
      line, std::string(key), array_of(line, key, "an array of rows of integers"), columns,
      [&](const std::string& here, const Json& one) { return integer_at(line, here, one, min, max); });
}

}  // namespace sluice::lab
