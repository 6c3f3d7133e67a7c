#include "base/json/json_value.h"

#include <algorithm>
#include <stdexcept>

namespace sluice {
namespace {

[[noreturn]] void missing(const std::string& what) {
  throw std::logic_error("JSON: " + what + " is missing");
}

}  // namespace

Json::Json(std::string text) : type_(Type::kString) { payload_.string = new std::string(std::move(text)); }
Json::Json(array_t elements) : type_(Type::kArray) { payload_.array = new array_t(std::move(elements)); }
Json::Json(object_t members) : type_(Type::kObject) { payload_.object = new object_t(std::move(members)); }

Json::Json(const Json& other) : payload_(other.payload_) {
  if (other.is_string()) payload_.string = new std::string(*other.payload_.string);
  if (other.is_array()) payload_.array = new array_t(*other.payload_.array);
  if (other.is_object()) payload_.object = new object_t(*other.payload_.object);
  type_ = other.type_;
}

void Json::destroy() noexcept {
  if (type_ == Type::kString) delete payload_.string;
  if (type_ == Type::kArray) delete payload_.array;
  if (type_ == Type::kObject) delete payload_.object;
}

Json::Json(std::initializer_list<JsonItem> items) {
  const bool members = std::all_of(items.begin(), items.end(), [](const JsonItem& item) {
    const Json& value = item.value_;
    return value.is_array() && value.size() == 2 && value.front().is_string();
  });
  *this = members ? object(items) : array(items);
}

Json Json::array() { return array_t(); }
Json Json::array(std::initializer_list<JsonItem> items) {
  array_t elements;
  elements.reserve(items.size());
  for (const JsonItem& item : items) elements.push_back(std::move(item.value_));
  return elements;
}

Json Json::object() { return object_t(); }
Json Json::object(std::initializer_list<JsonItem> items) {
  object_t members;
  for (const JsonItem& item : items) {
    Json& value = item.value_;
    if (!value.is_array() || value.size() != 2 || !value.front().is_string())
      throw std::logic_error("JSON: an item of an object is not a key and a value");
    members.emplace(std::move(*value.front().payload_.string), std::move(value.back()));
  }
  return members;
}

const char* Json::type_name() const {
  switch (type_) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return "boolean";
    case Type::kInteger:
    case Type::kNatural:
    case Type::kReal:
      return "number";
    case Type::kString:
      return "string";
    case Type::kArray:
      return "array";
    case Type::kObject:
      return "object";
  }
  return "";
}

void Json::wrong_type(const char* wanted) const {
  throw std::logic_error(std::string("JSON: type is ") + type_name() + ", not " + wanted);
}

const std::string& Json::string() const {
  if (!is_string()) wrong_type("string");
  return *payload_.string;
}

const Json::array_t& Json::elements() const {
  if (!is_array()) wrong_type("array");
  return *payload_.array;
}

const Json::object_t& Json::members() const {
  if (!is_object()) wrong_type("object");
  return *payload_.object;
}

Json::array_t& Json::mutable_elements() {
  if (is_null()) *this = array();
  return const_cast<array_t&>(elements());
}

Json::object_t& Json::mutable_members() {
  if (is_null()) *this = object();
  return const_cast<object_t&>(members());
}

std::size_t Json::size() const {
  if (is_array()) return payload_.array->size();
  if (is_object()) return payload_.object->size();
  return is_null() ? 0 : 1;
}

const Json::object_t& Json::items() const {
  static const object_t kNothing;
  return is_null() ? kNothing : members();
}
Json::object_t& Json::items() { return const_cast<object_t&>(members()); }

bool Json::contains(std::string_view key) const { return is_object() && payload_.object->contains(key); }

Json::iterator Json::find(std::string_view key) {
  return is_object() ? iterator(payload_.object->find(key)) : end();
}
Json::const_iterator Json::find(std::string_view key) const {
  return is_object() ? const_iterator(std::as_const(*payload_.object).find(key)) : end();
}

const Json& Json::at(std::string_view key) const {
  const auto found = members().find(key);
  if (found == payload_.object->end()) missing("the member \"" + std::string(key) + "\"");
  return found->second;
}
Json& Json::at(std::string_view key) { return const_cast<Json&>(std::as_const(*this).at(key)); }

const Json& Json::at(std::size_t index) const {
  if (index >= elements().size()) missing("element " + std::to_string(index));
  return (*payload_.array)[index];
}
Json& Json::at(std::size_t index) { return const_cast<Json&>(std::as_const(*this).at(index)); }

Json& Json::operator[](std::string_view key) {
  object_t& members = mutable_members();
  const auto found = members.lower_bound(key);
  if (found != members.end() && found->first == key) return found->second;
  return members.emplace_hint(found, key, nullptr)->second;
}

Json& Json::operator[](std::size_t index) {
  array_t& elements = mutable_elements();
  if (index >= elements.size()) elements.resize(index + 1);
  return elements[index];
}

const Json& Json::back() const {
  if (elements().empty()) missing("element 0");
  return payload_.array->back();
}
Json& Json::back() { return const_cast<Json&>(std::as_const(*this).back()); }

Json Json::value(std::string_view key, Json fallback) const {
  const auto found = members().find(key);
  return found == payload_.object->end() ? std::move(fallback) : found->second;
}

void Json::update(const Json& object) {
  for (const auto& [key, value] : object.members()) mutable_members().insert_or_assign(key, value);
}

std::size_t Json::erase(std::string_view key) {
  members();
  const auto found = payload_.object->find(key);
  if (found == payload_.object->end()) return 0;
  payload_.object->erase(found);
  return 1;
}

void Json::erase(std::size_t index) {
  at(index);
  payload_.array->erase(payload_.array->begin() + static_cast<std::ptrdiff_t>(index));
}

std::partial_ordering operator<=>(const Json& a, const Json& b) {
  if (!a.is_number()) a.wrong_type("number");
  if (!b.is_number()) b.wrong_type("number");
  if (a.is_number_float() || b.is_number_float()) return a.get<double>() <=> b.get<double>();
  const auto negative = [](const Json& value) {
    return !value.is_number_unsigned() && value.payload_.integer < 0;
  };
  if (negative(a) || negative(b)) {
    if (negative(a) != negative(b))
      return negative(a) ? std::partial_ordering::less : std::partial_ordering::greater;
    return a.payload_.integer <=> b.payload_.integer;
  }
  return a.get<std::uint64_t>() <=> b.get<std::uint64_t>();
}

bool operator==(const Json& a, const Json& b) {
  using Type = Json::Type;
  if (a.is_number() && b.is_number()) return (a <=> b) == 0;
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case Type::kBoolean:
      return a.payload_.boolean == b.payload_.boolean;
    case Type::kString:
      return *a.payload_.string == *b.payload_.string;
    case Type::kArray:
      return *a.payload_.array == *b.payload_.array;
    case Type::kObject:
      return *a.payload_.object == *b.payload_.object;
    default:
      return true;  // null
  }
}

}  // namespace sluice
