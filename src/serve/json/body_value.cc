#include "serve/json/body_value.h"

#include <charconv>
#include <string>

#include "serve/json/json_writer.h"

namespace sluice::serve {
namespace {

void write_value(JsonWriter& out, const BodyValue& value) {
  if (value.is_null()) {
    out.null();
  } else if (value.is_boolean()) {
    out.boolean(value.boolean());
  } else if (value.is_integer()) {
    out.integer(value.integer());
  } else if (value.is_number()) {
    out.real(value.number());
  } else if (value.is_string()) {
    out.string(value.string());
  } else if (value.is_array()) {
    out.begin_array();
    for (const BodyValue& element : value.array()) write_value(out, element);
    out.end_array();
  } else {
    out.begin_object();
    for (const auto& [key, member] : value.object()) {
      out.key(key);
      write_value(out, member);
    }
    out.end_object();
  }
}

}  // namespace

BodyFault::BodyFault(std::size_t byte, const std::string& message)
    : std::runtime_error("byte " + std::to_string(byte) + ": " + message) {}

const BodyValue* BodyValue::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : object())
    if (name == key) return value.is_null() ? nullptr : &value;
  return nullptr;
}

std::string body_text(const BodyValue& value) {
  JsonWriter out;
  write_value(out, value);
  return out.take();
}

std::string shown(const BodyValue& value) {
  constexpr std::size_t kMost = 40;
  if (value.is_array()) return "an array of " + std::to_string(value.array().size());
  if (value.is_object()) return "an object";
  if (value.is_string() && value.string().size() > kMost)
    return "a string of " + std::to_string(value.string().size()) + " bytes";
  return body_text(value);
}

}  // namespace sluice::serve
