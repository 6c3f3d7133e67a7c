// Writes compact JSON, members in the order in which they are given.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::serve {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view key);

  JsonWriter& null() { return raw("null"); }
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& integer(std::int64_t value) { return raw(std::to_string(value)); }
  JsonWriter& natural(std::uint64_t value) { return raw(std::to_string(value)); }
  // The shortest text that reads as the same double, always with a point or an exponent. Minus infinity is
  // −9999.0, what is no number at all is null.
  JsonWriter& real(double value);
  JsonWriter& tenth(double value);             // with one decimal
  JsonWriter& string(std::string_view value);  // what is not UTF-8 becomes U+FFFD
  JsonWriter& raw(std::string_view json);      // a value that is JSON already

  template <class T>
  JsonWriter& value(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      return boolean(value);
    } else if constexpr (std::signed_integral<T>) {
      return integer(value);
    } else if constexpr (std::unsigned_integral<T>) {
      return natural(value);
    } else if constexpr (std::floating_point<T>) {
      return real(value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      return string(value);
    } else {
      return value ? this->value(*value) : null();  // an optional
    }
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& member_value) {
    return key(name).value(member_value);
  }
  JsonWriter& null_member(std::string_view name) { return key(name).null(); }
  JsonWriter& raw_member(std::string_view name, std::string_view json) { return key(name).raw(json); }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  bool comma_ = false;  // something precedes in the container
};

}  // namespace sluice::serve
