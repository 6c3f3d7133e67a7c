// A JSON value in 16 bytes. The members have the names and the meaning that they have in nlohmann-json, whose
// 25,000 lines only base/json/json_text.cc and tokenizer/json/tokenizer_document.cc read.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice {

class Json;
class JsonItem;
template <class J>
class JsonIterator;

// What becomes an array, or an object where it maps strings.
template <class C>
concept JsonContainer = !std::same_as<C, Json> && !std::convertible_to<const C&, std::string_view> &&
                        requires(const C& container) {
  { *container.begin() } -> std::convertible_to<const typename C::value_type&>;
  container.end();
};

// Owns what it holds; a copy is deep. Not thread-safe, except that many threads may read. A value that is
// used as what it is not, or a member or element that is not there, is the caller's mistake:
// std::logic_error. Values from files are read through JsonObject (base/json/json.h), which knows the user's
// errors.
class Json {
 public:
  using array_t = std::vector<Json>;
  using object_t = std::map<std::string, Json, std::less<>>;  // sorted by key, as it is written
  using iterator = JsonIterator<Json>;
  using const_iterator = JsonIterator<const Json>;
  enum class error_handler_t { strict, replace, ignore };  // for strings that are not UTF-8

  Json() noexcept {}  // null
  Json(std::nullptr_t) noexcept {}
  template <class T>
  requires std::is_arithmetic_v<T> Json(T value)
  noexcept {
    if constexpr (std::same_as<T, bool>) {
      type_ = Type::kBoolean;
      payload_.boolean = value;
    } else if constexpr (std::floating_point<T>) {
      type_ = Type::kReal;
      payload_.real = static_cast<double>(value);
    } else if constexpr (std::is_signed_v<T>) {
      type_ = Type::kInteger;
      payload_.integer = value;
    } else {
      type_ = Type::kNatural;
      payload_.natural = value;
    }
  }
  Json(const char* text) : Json(std::string(text)) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(std::string text);
  Json(array_t elements);
  Json(object_t members);
  template <JsonContainer C>
  Json(const C& container) {
    if constexpr (requires { typename C::mapped_type; }) {
      *this = object();
      for (const auto& [key, value] : container) payload_.object->emplace(key, value);
    } else {
      *this = array();
      payload_.array->reserve(container.size());
      for (const auto& value : container) payload_.array->emplace_back(value);
    }
  }
  template <class A, class B>
  Json(const std::pair<A, B>& pair);  // an array of two
  // An object if each item is an array of two that begins with a string, else an array: {{"a", 1}} and {1,
  // 2}.
  Json(std::initializer_list<JsonItem> items);
  Json(const Json& other);
  Json(Json&& other) noexcept : type_(other.type_), payload_(other.payload_) { other.type_ = Type::kNull; }
  Json& operator=(Json other) noexcept {
    swap(other);
    return *this;
  }
  ~Json() {
    if (type_ >= Type::kString) destroy();
  }
  void swap(Json& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(payload_, other.payload_);
  }

  static Json array();
  static Json array(std::initializer_list<JsonItem> items);
  static Json object();
  static Json object(
      std::initializer_list<JsonItem> items);  // std::logic_error unless each is a key and a value

  // parse_json() with the default limits, of a text without a name. Error(kInvalid)
  static Json parse(std::string_view text);
  // Without line breaks if `indent` is negative. `ascii`: other characters as \u escapes.
  std::string dump(int indent = -1, char fill = ' ', bool ascii = false,
                   error_handler_t handler = error_handler_t::strict) const;
  friend std::ostream& operator<<(std::ostream& out, const Json& value);

  bool is_null() const { return type_ == Type::kNull; }
  bool is_boolean() const { return type_ == Type::kBoolean; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const { return type_ == Type::kInteger || type_ == Type::kNatural; }
  bool is_number_unsigned() const { return type_ == Type::kNatural; }  // also each number >= 0 of a text
  bool is_number_float() const { return type_ == Type::kReal; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_array() const { return type_ == Type::kArray; }
  bool is_object() const { return type_ == Type::kObject; }
  bool is_structured() const { return is_array() || is_object(); }
  const char* type_name() const;  // "null", "boolean", "number", "string", "array", "object"

  // A number of any kind as T (converted as static_cast does), bool, std::string, Json, or a container of
  // them.
  template <class T>
  T get() const {
    if constexpr (std::same_as<T, bool>) {
      if (!is_boolean()) wrong_type("boolean");
      return payload_.boolean;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (type_ == Type::kInteger) return static_cast<T>(payload_.integer);
      if (type_ == Type::kNatural) return static_cast<T>(payload_.natural);
      if (type_ != Type::kReal) wrong_type("number");
      return static_cast<T>(payload_.real);
    } else if constexpr (std::same_as<T, std::string>) {
      return string();
    } else if constexpr (std::same_as<T, Json>) {
      return *this;
    } else if constexpr (requires { typename T::mapped_type; }) {
      T values;
      for (const auto& member : members()) {
        const Json& value = member.second;
        values.emplace(member.first, value.get<typename T::mapped_type>());
      }
      return values;
    } else {
      T values;
      for (const Json& value : elements()) values.push_back(value.get<typename T::value_type>());
      return values;
    }
  }
  // Reference to a std::string, array_t or object_t.
  template <class R>
  requires std::is_reference_v<R> R get_ref()
  const {
    using T = std::remove_cvref_t<R>;
    if constexpr (std::same_as<T, std::string>) return string();
    if constexpr (std::same_as<T, array_t>) return elements();
    if constexpr (std::same_as<T, object_t>) return members();
  }
  template <class R>
  requires std::is_reference_v<R> R get_ref() {
    const Json& self = *this;
    return const_cast<R>(self.get_ref<const std::remove_cvref_t<R>&>());
  }

  std::size_t size() const;  // 0 of null, 1 of a scalar
  bool empty() const { return size() == 0; }

  // Elements of an array, values of an object, a scalar itself, or nothing of null.
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  const object_t& items() const;  // members of an object, or nothing of null
  object_t& items();

  bool contains(std::string_view key) const;  // false of what is no object
  iterator find(std::string_view key);
  const_iterator find(std::string_view key) const;
  Json& at(std::string_view key);
  const Json& at(std::string_view key) const;
  Json& at(std::size_t index);
  const Json& at(std::size_t index) const;
  // Makes an object (array) of null, and adds a null where the member (elements up to it) is missing.
  Json& operator[](std::string_view key);
  Json& operator[](std::size_t index);
  const Json& operator[](std::string_view key) const { return at(key); }
  const Json& operator[](std::size_t index) const { return at(index); }
  Json& front() { return at(std::size_t{0}); }
  const Json& front() const { return at(std::size_t{0}); }
  Json& back();
  const Json& back() const;
  Json value(std::string_view key, Json fallback) const;  // the member, or the other

  void push_back(Json value) { emplace_back(std::move(value)); }
  template <class... Args>
  Json& emplace_back(Args&&... args) {
    return mutable_elements().emplace_back(std::forward<Args>(args)...);
  }
  void update(const Json& object);  // adds its members, in place of those of equal keys
  std::size_t erase(std::string_view key);
  void erase(std::size_t index);

  // Numbers compare by value, whatever their kinds.
  friend bool operator==(const Json& a, const Json& b);
  friend std::partial_ordering operator<=>(const Json& a, const Json& b);  // for numbers alone

 private:
  enum class Type : std::uint8_t { kNull, kBoolean, kInteger, kNatural, kReal, kString, kArray, kObject };

  void destroy() noexcept;
  [[noreturn]] void wrong_type(const char* wanted) const;
  const std::string& string() const;
  const array_t& elements() const;
  const object_t& members() const;
  array_t& mutable_elements();  // makes an array of null
  object_t& mutable_members();  // makes an object of null

  union Payload {
    bool boolean;
    std::int64_t integer;
    std::uint64_t natural = 0;
    double real;
    std::string* string;  // owned, as those below
    array_t* array;
    object_t* object;
  };
  Type type_ = Type::kNull;
  Payload payload_;
};
static_assert(sizeof(Json) == 16);

// One item of a braced list, which the list's value takes without a copy.
class JsonItem {
 public:
  JsonItem() = default;
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, JsonItem> && std::constructible_from<Json, T>)
      JsonItem(T&& value)
      : value_(std::forward<T>(value)) {}
  JsonItem(std::initializer_list<JsonItem> items) : value_(items) {}

 private:
  friend class Json;
  mutable Json value_;
};

// Forward iterator over the elements of an array or the members of an object.
template <class J>
class JsonIterator {
  using Member =
      std::conditional_t<std::is_const_v<J>, Json::object_t::const_iterator, Json::object_t::iterator>;

 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = J*;
  using reference = J&;

  JsonIterator() = default;
  explicit JsonIterator(J* element) : element_(element) {}
  explicit JsonIterator(Member member) : member_(member) {}

  J& operator*() const { return element_ != nullptr ? *element_ : member_->second; }
  J* operator->() const { return &**this; }
  const std::string& key() const { return member_->first; }  // REQUIRES: of an object
  J& value() const { return **this; }
  JsonIterator& operator++() {
    if (element_ != nullptr) {
      ++element_;
    } else {
      ++member_;
    }
    return *this;
  }
  JsonIterator operator++(int) {
    JsonIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const JsonIterator&) const = default;

 private:
  J* element_ = nullptr;  // null: in an object
  Member member_ = {};
};

template <class A, class B>
Json::Json(const std::pair<A, B>& pair) : Json({JsonItem(pair.first), JsonItem(pair.second)}) {
  if (is_object()) *this = array({pair.first, pair.second});
}

inline Json::iterator Json::begin() {
  if (is_object()) return iterator(payload_.object->begin());
  if (is_array()) return iterator(payload_.array->data());
  return iterator(this);
}
inline Json::const_iterator Json::begin() const {
  if (is_object()) return const_iterator(payload_.object->cbegin());
  if (is_array()) return const_iterator(payload_.array->data());
  return const_iterator(this);
}
inline Json::iterator Json::end() {
  if (is_object()) return iterator(payload_.object->end());
  return iterator((is_array() ? payload_.array->data() : this) + size());
}
inline Json::const_iterator Json::end() const {
  if (is_object()) return const_iterator(payload_.object->cend());
  return const_iterator((is_array() ? payload_.array->data() : this) + size());
}

}  // namespace sluice
