#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace sluice {
namespace {

constexpr std::size_t kShownBytes = 80;  // of a value or token in a message

// Printable ASCII, shortened: file content must not reach a terminal as it is.
std::string shown(std::string text, std::size_t most) {
  const bool cut = text.size() > most;
  if (cut) text.resize(most);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return cut ? text + "..." : text;
}

// Characters of the text that also tell how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the value, and refuses what nlohmann-json would let pass: duplicate keys (the last would win) and
// any depth.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& name, const JsonLimits& limits)
      : begin_(text.data()), size_(text.size()), furthest_(text.data()), name_(name), limits_(limits) {}

  const char** furthest() { return &furthest_; }
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    const auto [position, inserted] = open_.back()->get_ref<Json::object_t&>().emplace(key, nullptr);
    if (!inserted) {
      throw Error(ErrorKind::kInvalid, "duplicate key in JSON object")
          .in(name_, consumed())
          .found("\"" + shown(key, kShownBytes) + "\"")
          .fix("keep one of the two");
    }
    slot_ = &position->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    if (position > size_) {
      throw Error(ErrorKind::kInvalid, "unexpected end of the JSON")
          .in(name_, size_)
          .fix("get the file again");
    }
    std::string text = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    const std::size_t bracket = text.find("] ");
    if (bracket != std::string::npos) text.erase(0, bracket + 2);
    // On the first line the byte says all; and what is called that may be line 7 of the caller's input.
    constexpr std::string_view kFirstLine = "parse error at line 1, column ";
    if (text.starts_with(kFirstLine)) text.erase(0, text.find(": ", kFirstLine.size()) + 2);
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name_, position > 0 ? position - 1 : 0)
        .found(shown(text, 200))
        .fix("correct the text, or get the file again");
  }

 private:
  Bytes consumed() const { return static_cast<Bytes>(furthest_ - begin_); }

  template <class T>
  Json* place(T&& value) {
    if (open_.empty()) {
      root_ = Json(std::forward<T>(value));
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<Json::array_t&>();
      return &array.emplace_back(std::forward<T>(value));
    }
    *slot_ = Json(std::forward<T>(value));
    return slot_;
  }

  template <class T>
  bool add(T&& value) {
    place(std::forward<T>(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() >= limits_.max_depth) {
      throw Error(ErrorKind::kInvalid, "JSON is nested too deeply")
          .in(name_, consumed())
          .expected("at most " + std::to_string(limits_.max_depth) + " levels")
          .found("more")
          .fix("correct the text, or get the file again");
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const char* begin_;
  std::size_t size_;
  const char* furthest_;
  const std::string& name_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*>
      open_;  // containers from the root down to the one being read; none moves while a child is open
  Json* slot_ = nullptr;  // value of the last key
};

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size()) + " elements";
  return shown(value.dump(-1, ' ', true, Json::error_handler_t::replace), kShownBytes);
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

Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw Error(ErrorKind::kInvalid, "JSON is too large")
        .in(name)
        .expected("at most " + std::to_string(limits.max_bytes) + " bytes")
        .found(std::to_string(text.size()))
        .fix("check that it is the right file");
  }
  // NUL is legal nowhere in JSON; nlohmann-json takes it for the end of the text.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name, nul)
        .found("a NUL byte")
        .fix("correct the text, or get the file again");
  }
  Builder builder(text, name, limits);
  const CountingIterator first(text.data(), builder.furthest());
  const CountingIterator last(text.data() + text.size(), builder.furthest());
  const bool complete = Json::sax_parse(first, last, &builder, Json::input_format_t::json, true, false);
  SLUICE_CHECK(complete, name);  // every failure has thrown
  return builder.take();
}

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
        .fix("add the field");
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
