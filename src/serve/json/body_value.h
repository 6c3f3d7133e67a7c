// A JSON value of a request's body. Unlike base/json it keeps the order of members, since templates print
// tools as they came, and obeys the limits of bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::serve {

class BodyValue {
 public:
  using Array = std::vector<BodyValue>;
  using Member = std::pair<std::string, BodyValue>;
  using Object = std::vector<Member>;  // in the order of the text; of equal keys the last counts

  BodyValue() = default;  // null
  template <class T>
  explicit BodyValue(T value) : data_(std::move(value)) {}

  bool is_null() const { return is<std::monostate>(); }
  bool is_boolean() const { return is<bool>(); }
  bool is_integer() const { return is<std::int64_t>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  bool is_string() const { return is<std::string>(); }
  bool is_array() const { return is<Array>(); }
  bool is_object() const { return is<Object>(); }

  // REQUIRES: it is one
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(data_); }
  const std::string& string() const { return std::get<std::string>(data_); }
  std::string& string() { return std::get<std::string>(data_); }
  const Array& array() const { return std::get<Array>(data_); }
  Array& array() { return std::get<Array>(data_); }
  const Object& object() const { return std::get<Object>(data_); }
  Object& object() { return std::get<Object>(data_); }

  // The member of an object; null if it is absent, is JSON's null, or this is no object.
  const BodyValue* find(std::string_view key) const;

 private:
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> data_;
};

// What is wrong with a text, and where.
class BodyFault : public std::runtime_error {
 public:
  BodyFault(std::size_t byte, const std::string& message);
};

// It takes more memory than it may.
class BodyTooLarge : public BodyFault {
 public:
  using BodyFault::BodyFault;
};

struct BodyLimits {
  std::size_t depth = 128, keys = 4096;               // keys: of one object
  std::size_t memory = static_cast<std::size_t>(-1);  // bytes that the value may take, about
};

// One JSON value and nothing else. BodyFault: bad syntax, bytes that are not UTF-8, lone surrogates, numbers
// that a double does not hold, and what passes the limits; BodyTooLarge where that is its memory.
BodyValue parse_body(std::string_view text, const BodyLimits& limits = {});

// A value as errors show it: short, in JSON.
std::string shown(const BodyValue& value);
// The whole value, compact, members in their order.
std::string body_text(const BodyValue& value);

}  // namespace sluice::serve
