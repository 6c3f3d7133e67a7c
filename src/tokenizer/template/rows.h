// Tables of filters, tests, methods and functions: a new one is a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/template/render.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

// Arguments by the place that they have in a row's `parameters`.
class Bound {
 public:
  // `parameters` are names with blanks between them; '?' ends those that may be left out. "*" takes any
  // arguments, which `all` has. Fault naming `what`, the filter or method, and the argument.
  Bound(std::string_view what, std::string_view parameters, Arguments arguments);

  bool given(std::size_t i) const { return i < values_.size() && values_[i].has_value(); }
  bool given_some(std::size_t i) const { return given(i) && !values_[i]->is_none(); }
  const Value& operator[](std::size_t i) const { return *values_[i]; }  // REQUIRES: given
  // Fault if the argument is of another type; the other value if it is not given.
  std::int64_t integer(std::size_t i, std::int64_t otherwise = 0) const;
  bool truth(std::size_t i, bool otherwise = false) const;
  const MarkedText& text(std::size_t i) const;  // REQUIRES: given
  std::string_view what() const { return what_; }

  Arguments all;

 private:
  std::string_view what_;
  std::vector<std::optional<Value>> values_;
};

struct Row {
  std::string_view name, parameters;
  Value (*apply)(Render& render, const Value& subject, const Bound& arguments);
};

std::span<const Row> text_filters();  // strings, and conversions
std::span<const Row> list_filters();
std::span<const Row> tests();  // each gives a boolean
std::span<const Row> text_methods();
std::span<const Row> dict_methods();
std::span<const Row> list_methods();
std::span<const Row> functions();  // their subject is undefined
std::span<const Row> loop_methods();

const Row* find_row(std::span<const Row> rows, std::string_view name);  // null if there is none
const Row* find_filter(std::string_view name);

// A row as a value that can be called, with its subject.
Value bound_method(Render& render, const Row& row, const Value& subject);

}  // namespace sluice::tokenizer::jinja
