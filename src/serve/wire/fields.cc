#include "serve/wire/fields.h"

#include "serve/json/json_writer.h"
#include "serve/wire/service.h"

namespace sluice::serve {
namespace {

std::string plain_number(double value) {
  JsonWriter out;
  if (value == static_cast<double>(static_cast<std::int64_t>(value))) {
    out.integer(static_cast<std::int64_t>(value));
  } else {
    out.real(value);
  }
  return out.take();
}

}  // namespace

void refuse_type(const std::string& path, std::string_view expected, const BodyValue& found) {
  throw ApiError(400, "invalid_type",
                 "'" + path + "' must be " + std::string(expected) + ", found " + shown(found))
      .about(path);
}

void refuse_value(const std::string& path, std::string_view expected, const BodyValue& found) {
  throw ApiError(400, "invalid_value",
                 "'" + path + "' must be " + std::string(expected) + ", found " + shown(found))
      .about(path);
}

std::string element_path(const std::string& path, std::size_t index) {
  return path + '[' + std::to_string(index) + ']';
}

Fields::Fields(const BodyValue& object, std::string path) : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) refuse_type(path_.empty() ? "the body" : path_, "an object", object);
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + '.' + std::string(name);
}

void Fields::wrong_type(std::string_view name, std::string_view expected) const {
  refuse_type(path(name), expected, *find(name));
}

void Fields::wrong_value(std::string_view name, std::string_view expected) const {
  refuse_value(path(name), expected, *find(name));
}

const BodyValue& Fields::need(std::string_view name) const {
  const BodyValue* value = find(name);
  if (value == nullptr) throw missing_field(path(name));
  return *value;
}

std::optional<double> Fields::number(std::string_view name, double min, double max) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = "a number from " + plain_number(min) + " to " + plain_number(max);
  if (!value->is_number()) wrong_type(name, expected);
  if (value->number() < min || value->number() > max) wrong_value(name, expected);
  return value->number();
}

std::optional<double> Fields::number_above(std::string_view name, double min, double max) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = "a number above " + plain_number(min) + ", at most " + plain_number(max);
  if (!value->is_number()) wrong_type(name, expected);
  if (value->number() <= min || value->number() > max) wrong_value(name, expected);
  return value->number();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t min, std::int64_t max) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool unbounded = max == INT64_MAX;
  const std::string expected = min == INT64_MIN ? std::string("an integer of 64 bits")
                               : unbounded
                                   ? "an integer of at least " + std::to_string(min)
                                   : "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  if (!value->is_integer()) wrong_type(name, expected);
  if (value->integer() < min || value->integer() > max) wrong_value(name, expected);
  return value->integer();
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(name, "true or false");
  return value->boolean();
}

std::optional<std::string> Fields::string(std::string_view name) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(name, "a string");
  return value->string();
}

const BodyValue* Fields::array(std::string_view name, std::size_t most) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return nullptr;
  const std::string expected = "an array of at most " + std::to_string(most);
  if (!value->is_array()) wrong_type(name, expected);
  if (value->array().size() > most) wrong_value(name, expected);
  return value;
}

std::optional<Fields> Fields::object(std::string_view name) const {
  const BodyValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  return Fields(*value, path(name));
}

std::optional<std::string> Fields::word(std::string_view name, std::vector<std::string_view> words) const {
  const std::optional<std::string> given = string(name);
  if (!given) return std::nullopt;
  std::string expected = "one of";
  for (const std::string_view word : words) {
    if (*given == word) return given;
    expected += " \"" + std::string(word) + '"';
  }
  wrong_value(name, expected);
}

BodyValue read_body(const Call& call) {
  return read_body(call.request().body, call.service.options.body_memory);
}

BodyValue read_body(std::string_view text, std::size_t memory) {
  try {
    BodyValue body = parse_body(text, {.memory = memory});
    if (!body.is_object()) refuse_type("the body", "an object", body);
    return body;
  } catch (const BodyTooLarge& fault) {
    throw ApiError(413, "request_too_large", fault.what());
  } catch (const BodyFault& fault) {
    throw ApiError(400, "invalid_json", std::string("the body is not JSON: ") + fault.what());
  }
}

}  // namespace sluice::serve
