#include "base/json/json.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/shown_text.h"

namespace sluice {
namespace {

constexpr std::size_t kShownBytes = 80;  // bytes of a value or token in a message

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size()) + " elements";
  return shown_ascii(value.dump(-1, ' ', true, Json::error_handler_t::replace), kShownBytes);
}

// The value as int64 if it is an integer in JSON's sense and in [min, max].
std::optional<std::int64_t> as_integer(const Json& value, std::int64_t min, std::int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const std::uint64_t number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  }
  const std::int64_t number = value.get<std::int64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

std::string integer_range(std::int64_t min, std::int64_t max) {
  return "an integer in [" + std::to_string(min) + ", " + std::to_string(max) + "]";
}

}  // namespace

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  return parse_json(read_text_file(path, limits.max_bytes), path, limits);
}

JsonObject::JsonObject(const Json& value, std::string name) : value_(&value), name_(std::move(name)) {
  if (!value.is_object()) {
    throw Error(ErrorKind::kInvalid, "wrong type")
        .in(name_)
        .expected("a JSON object")
        .found(describe(value))
        .fix("correct the text, or get the file again");
  }
}

const Json* JsonObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonObject::has(std::string_view key) const { return find(key) != nullptr; }

std::string JsonObject::field_name(std::string_view key) const {
  return name_ + (nested_ ? "." : ": ") + std::string(key);
}

void JsonObject::fail(std::string_view key, std::string_view expected) const {
  const auto found = value_->find(key);
  if (found == value_->end()) {
    throw Error(ErrorKind::kInvalid, "field is missing")
        .in(field_name(key))
        .expected(expected)
        .found("nothing")
        .fix("get the file again, or add the field");
  }
  throw Error(ErrorKind::kInvalid, "field has a wrong value")
      .in(field_name(key))
      .expected(expected)
      .found(describe(*found))
      .fix("correct the value");
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const Json* value = find(key);
  const std::optional<std::int64_t> number = value != nullptr ? as_integer(*value, min, max) : std::nullopt;
  if (!number) fail(key, integer_range(min, max));
  return *number;
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                    std::int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

double JsonObject::real(std::string_view key, double min, double max) const {
  const Json* value = find(key);
  if (value != nullptr && value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  Json low(min), high(max);
  fail(key, "a number in [" + low.dump() + ", " + high.dump() + "]");
}

double JsonObject::real_or(std::string_view key, double fallback, double min, double max) const {
  return has(key) ? real(key, min, max) : fallback;
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "true or false");
  return value->get<bool>();
}

std::string JsonObject::string(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_string()) fail(key, "a string");
  return value->get<std::string>();
}

std::string JsonObject::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

std::vector<std::int64_t> JsonObject::integers_or(std::string_view key, std::vector<std::int64_t> fallback,
                                                  std::int64_t min, std::int64_t max) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_number()) return {integer(key, min, max)};
  const std::string expected = "an array, each element " + integer_range(min, max);
  if (!value->is_array()) fail(key, expected);
  std::vector<std::int64_t> numbers;
  numbers.reserve(value->size());
  for (const Json& element : *value) {
    const std::optional<std::int64_t> number = as_integer(element, min, max);
    if (!number) {
      throw Error(ErrorKind::kInvalid,
                  "element " + std::to_string(numbers.size()) + " of the field has a wrong value")
          .in(field_name(key))
          .expected(expected)
          .found(describe(element))
          .fix("correct the value");
    }
    numbers.push_back(*number);
  }
  return numbers;
}

JsonObject JsonObject::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_object()) fail(key, "an object");
  JsonObject child(*value, field_name(key));
  child.nested_ = true;
  return child;
}

}  // namespace sluice
