// Texts of JSON values, by nlohmann-json: this file alone reads and writes them. (A tokenizer's document, too
// large for a value, is read in tokenizer/json/tokenizer_document.cc.)
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_builder.h"
#include "base/json/parse_fault.h"
#include "base/shown_text.h"

namespace sluice {
namespace {

constexpr std::size_t kShownKeyBytes = 80;  // in a message

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

// Builds the value, and refuses what the library would let pass: duplicate keys (the last would win) and
// any depth.
class Builder : public nlohmann::json_sax<nlohmann::json> {
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
    if (!tree_.key(key)) {
      throw Error(ErrorKind::kInvalid, "duplicate key in JSON object")
          .in(name_, consumed())
          .expected("each key once")
          .found("\"" + shown_ascii(key, kShownKeyBytes) + "\"")
          .fix("keep one of the two");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    if (position > size_) {
      throw Error(ErrorKind::kInvalid, "unexpected end of the JSON")
          .in(name_, size_)
          .expected(size_ == 0 ? "a JSON value" : "the rest of the JSON value")
          .found(size_ == 0 ? "nothing" : "the end of the text")
          .fix("get the file again");
    }
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name_, position > 0 ? position - 1 : 0)
        .expected("JSON")
        .found(shown_ascii(parse_fault(e.what()), 200))
        .fix("correct the text, or get the file again");
  }

 private:
  Bytes consumed() const { return static_cast<Bytes>(furthest_ - begin_); }

  template <class T>
  bool add(T&& value) {
    tree_.add(std::forward<T>(value));
    return true;
  }

  bool open(Json container) {
    if (tree_.depth() >= limits_.max_depth) {
      throw Error(ErrorKind::kInvalid, "JSON is nested too deeply")
          .in(name_, consumed())
          .expected("at most " + std::to_string(limits_.max_depth) + " levels")
          .found("more")
          .fix("correct the text, or get the file again");
    }
    tree_.open(std::move(container));
    return true;
  }

  bool close() {
    tree_.close();
    return true;
  }

  const char* begin_;
  std::size_t size_;
  const char* furthest_;
  const std::string& name_;
  const JsonLimits& limits_;
  Json root_;
  JsonBuilder tree_{root_};
};

// The library's value, to be written by it.
nlohmann::json library_value(const Json& value) {
  if (value.is_object()) {
    nlohmann::json::object_t members;
    for (const auto& [key, member] : value.items())
      members.emplace_hint(members.end(), key, library_value(member));
    return members;
  }
  if (value.is_array()) {
    nlohmann::json::array_t elements;
    elements.reserve(value.size());
    for (const Json& element : value) elements.push_back(library_value(element));
    return elements;
  }
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  return nullptr;
}

nlohmann::json::error_handler_t library_handler(Json::error_handler_t handler) {
  switch (handler) {
    case Json::error_handler_t::strict:
      return nlohmann::json::error_handler_t::strict;
    case Json::error_handler_t::replace:
      return nlohmann::json::error_handler_t::replace;
    case Json::error_handler_t::ignore:
      break;
  }
  return nlohmann::json::error_handler_t::ignore;
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
  // NUL is legal nowhere in JSON; the library takes it for the end of the text.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name, nul)
        .expected("JSON")
        .found("a NUL byte")
        .fix("correct the text, or get the file again");
  }
  Builder builder(text, name, limits);
  const CountingIterator first(text.data(), builder.furthest());
  const CountingIterator last(text.data() + text.size(), builder.furthest());
  const bool complete =
      nlohmann::json::sax_parse(first, last, &builder, nlohmann::json::input_format_t::json, true, false);
  SLUICE_CHECK(complete, name);  // every failure has thrown
  return builder.take();
}

Json Json::parse(std::string_view text) { return parse_json(text, "JSON"); }

std::string Json::dump(int indent, char fill, bool ascii, error_handler_t handler) const {
  return library_value(*this).dump(indent, fill, ascii, library_handler(handler));
}

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump(); }

std::string json_library_version() {
  return fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                     NLOHMANN_JSON_VERSION_PATCH);
}

}  // namespace sluice
