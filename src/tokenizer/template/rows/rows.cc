#include "tokenizer/template/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::tokenizer::jinja {
namespace {

class BoundMethod final : public Callable {
 public:
  BoundMethod(Meter& meter, const Row& row, Value subject)
      : Callable(&meter), row_(row), subject_(std::move(subject)) {
    count(sizeof(BoundMethod));
  }
  Value call(Render& render, Arguments arguments) override {
    if (subject_.is_string()) render.meter().work(subject_.text().size());
    return row_.apply(render, subject_, Bound(row_.name, row_.parameters, std::move(arguments)));
  }
  std::string shown() const override { return fmt::format("<function {}>", row_.name); }

 private:
  const Row& row_;
  const Value subject_;
};

}  // namespace

Bound::Bound(std::string_view what, std::string_view parameters, Arguments arguments) : what_(what) {
  if (parameters == "*") {
    all = std::move(arguments);
    return;
  }
  std::size_t place = 0, used = 0;
  while (!parameters.empty()) {
    const std::size_t blank = std::min(parameters.find(' '), parameters.size());
    std::string_view name = parameters.substr(0, blank);
    parameters.remove_prefix(std::min(blank + 1, parameters.size()));
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    std::optional<Value>& value = values_.emplace_back();
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (place < arguments.plain.size()) {
      value = std::move(arguments.plain[place]);
      if (named != arguments.named.end())
        throw Fault(fmt::format("{}: the argument {} is given twice", what, name));
    } else if (named != arguments.named.end()) {
      value = std::move(named->second);
      ++used;
    } else if (!optional) {
      throw Fault(fmt::format("{}: the argument {} is missing", what, name));
    }
    ++place;
  }
  if (arguments.plain.size() > place)
    throw Fault(
        fmt::format("{}: expected at most {} arguments, found {}", what, place, arguments.plain.size()));
  if (used < arguments.named.size())
    throw Fault(fmt::format("{}: unknown argument {}", what, arguments.named.back().first));
}

std::int64_t Bound::integer(std::size_t i, std::int64_t otherwise) const {
  if (!given(i)) return otherwise;
  const Value& value = (*this)[i];
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (!value.is_integer() && !value.is_boolean())
    throw Fault(fmt::format("{}: expected an integer, found a value of type {}", what_, value.type_name()));
  return value.integer();
}

bool Bound::truth(std::size_t i, bool otherwise) const { return given(i) ? (*this)[i].truth() : otherwise; }

const MarkedText& Bound::text(std::size_t i) const {
  const Value& value = (*this)[i];
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (!value.is_string())
    throw Fault(fmt::format("{}: expected a string, found a value of type {}", what_, value.type_name()));
  return value.text();
}

const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

const Row* find_filter(std::string_view name) {
  const Row* row = find_row(text_filters(), name);
  return row != nullptr ? row : find_row(list_filters(), name);
}

Value bound_method(Render& render, const Row& row, const Value& subject) {
  return Value(std::shared_ptr<Callable>(std::make_shared<BoundMethod>(render.meter(), row, subject)));
}

}  // namespace sluice::tokenizer::jinja
