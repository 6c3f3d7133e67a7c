#include "lab/ask/fields.h"

#include <cmath>

#include "base/error.h"

namespace sluice::lab {
namespace {

std::string at(std::string_view key, std::size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

std::string range(const char* what, const Json& min, const Json& max) {
  return what + (" in [" + min.dump()) + ", " + max.dump() + "]";
}

}  // namespace

void fail_at(const JsonObject& line, const std::string& place, std::string_view expected, const Json& found) {
  throw Error(ErrorKind::kInvalid, "field has a wrong value")
      .in(line.name() + ": " + place)
      .expected(expected)
      .found(found.is_structured() ? found.type_name()
                                   : found.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80));
}

const Json& array_of(const JsonObject& line, std::string_view key, std::string_view expected) {
  const Json* value = line.find(key);
  if (value == nullptr || !value->is_array()) line.fail(key, expected);
  return *value;
}

double number_at(const JsonObject& line, const std::string& place, const Json& value, double min,
                 double max) {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  fail_at(line, place, range("a number", min, max), value);
}

std::int64_t integer_at(const JsonObject& line, const std::string& place, const Json& value, std::int64_t min,
                        std::int64_t max) {
  if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX)) {
    const std::int64_t number = value.get<std::int64_t>();
    if (number >= min && number <= max) return number;
  }
  fail_at(line, place, range("an integer", min, max), value);
}

std::vector<double> numbers(const JsonObject& line, std::string_view key, double min, double max) {
  std::vector<double> values;
  for (const Json& value : array_of(line, key, range("an array, each element a number", min, max))) {
    values.push_back(number_at(line, at(key, values.size()), value, min, max));
  }
  return values;
}

std::vector<std::int64_t> integers(const JsonObject& line, std::string_view key, std::int64_t min,
                                   std::int64_t max) {
  std::vector<std::int64_t> values;
  for (const Json& value : array_of(line, key, range("an array, each element an integer", min, max))) {
    values.push_back(integer_at(line, at(key, values.size()), value, min, max));
  }
  return values;
}

bool boolean(const JsonObject& line, std::string_view key) {
  const Json* value = line.find(key);
  if (value == nullptr || !value->is_boolean()) line.fail(key, "true or false");
  return value->get<bool>();
}

}  // namespace sluice::lab
