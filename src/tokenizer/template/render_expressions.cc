// Evaluates the expressions of a template.
#include <fmt/format.h>

#include "tokenizer/template/operators.h"
#include "tokenizer/template/place.h"
#include "tokenizer/template/render.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/value_text.h"

namespace sluice::tokenizer::jinja {
namespace {

class Deeper {
 public:
  explicit Deeper(Meter& meter) : meter_(meter) { meter.enter(); }
  ~Deeper() { meter_.leave(); }

 private:
  Meter& meter_;
};

bool compared(Operator operation, const Value& a, const Value& b, Meter& meter) {
  switch (operation) {
    case Operator::kEqual:
      return equal(a, b, meter);
    case Operator::kNotEqual:
      return !equal(a, b, meter);
    case Operator::kLess:
      return ordered(a, b, "<", meter) < 0;
    case Operator::kLessEqual:
      return ordered(a, b, "<=", meter) <= 0;
    case Operator::kGreater:
      return ordered(a, b, ">", meter) > 0;
    case Operator::kGreaterEqual:
      return ordered(a, b, ">=", meter) >= 0;
    case Operator::kIn:
      return contains(b, a, meter);
    default:
      return !contains(b, a, meter);
  }
}

Value loop_attribute(const Loop& loop, std::string_view name) {
  const auto count = static_cast<std::int64_t>(loop.items.size());
  const auto index0 = static_cast<std::int64_t>(loop.index0);
  if (name == "index") return index0 + 1;
  if (name == "index0") return index0;
  if (name == "revindex") return count - index0;
  if (name == "revindex0") return count - index0 - 1;
  if (name == "first") return index0 == 0;
  if (name == "last") return index0 + 1 == count;
  if (name == "length") return count;
  if (name == "depth") return 1;
  if (name == "depth0") return 0;
  if (name == "previtem")
    return index0 == 0 ? Value::undefined("there is no previous item") : loop.items[loop.index0 - 1];
  if (name == "nextitem")
    return index0 + 1 == count ? Value::undefined("there is no next item") : loop.items[loop.index0 + 1];
  return Value::undefined(fmt::format("the loop has no attribute '{}'", name));
}

}  // namespace

Value Render::evaluate(const Expression& expression) {
  try {
    const Deeper deeper(meter_);
    meter_.step();
    return evaluate_kind(expression);
  } catch (const Fault& fault) {
    throw template_error(name_, expression.place, fault.message);
  }
}

Value Render::evaluate_kind(const Expression& expression) {
  using Kind = Expression::Kind;
  const auto part = [&](std::size_t i) { return evaluate(*expression.parts[i]); };
  switch (expression.kind) {
    case Kind::kConstant:
      return expression.constant;
    case Kind::kName:
      return variable(expression);
    case Kind::kList:
      return evaluate_list(expression, ListKind::kList);
    case Kind::kTuple:
      return evaluate_list(expression, ListKind::kTuple);
    case Kind::kDict:
      return evaluate_dict(expression);
    case Kind::kAttribute:
      return attribute(part(0), expression.name);
    case Kind::kItem: {
      const Value subject = part(0);
      return item(subject, part(1));
    }
    case Kind::kSlice:
      return evaluate_slice(expression);
    case Kind::kCall:
      return evaluate_call(expression);
    case Kind::kFilter:
      return evaluate_filter(expression);
    case Kind::kTest: {
      const Value subject = part(0);
      return test(expression.name, subject, evaluate_arguments(expression));
    }
    case Kind::kUnary:
      return unary(expression.operators[0], part(0));
    case Kind::kBinary: {
      const Value left = part(0);
      return binary(expression.operators[0], left, part(1), meter_);
    }
    case Kind::kCompare:
      return evaluate_compare(expression);
    case Kind::kConcat:
      return evaluate_concat(expression);
    case Kind::kAnd: {
      Value left = part(0);
      return left.truth() ? part(1) : left;
    }
    case Kind::kOr: {
      Value left = part(0);
      return left.truth() ? left : part(1);
    }
    case Kind::kNot:
      return !part(0).truth();
    case Kind::kIf:
      if (part(1).truth()) return part(0);
      if (expression.parts[2] != nullptr) return part(2);
      return Value::undefined("an inline `if` was false and has no `else`");
  }
  return {};
}

Value Render::variable(const Expression& expression) {
  if (const Value* value = scope_->find(expression.name_id)) return *value;
  std::optional<Value>& cached = variable_cache_[expression.name_id];
  if (!cached) {
    if (const Value* value = variables_.find(expression.name)) {
      cached = *value;
    } else if (const Row* row = find_row(functions(), expression.name)) {
      cached = bound_method(*this, *row, Value());
    } else {
      cached = Value::undefined(fmt::format("'{}' is undefined", expression.name));
    }
  }
  return *cached;
}

Value Render::evaluate_list(const Expression& expression, ListKind kind) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : expression.parts) items.push_back(evaluate(*part));
  return list(std::move(items), kind);
}

Value Render::evaluate_dict(const Expression& expression) {
  auto dict = std::make_shared<Dict>(&meter_);
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i]);
    dict->set(std::move(key), evaluate(*expression.parts[i + 1]));
  }
  return Value(std::move(dict));
}

Value Render::evaluate_slice(const Expression& expression) {
  const Value subject = evaluate(*expression.parts[0]);
  const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (expression.parts[i] == nullptr) return std::nullopt;
    const Value value = evaluate(*expression.parts[i]);
    if (value.is_none()) return std::nullopt;
    if (value.is_undefined()) throw Fault(value.undefined_text());
    if (!value.is_integer() && !value.is_boolean())
      throw Fault(fmt::format("a bound of a slice is of type {}, not an integer", value.type_name()));
    return value.integer();
  };
  SliceBounds bounds;
  bounds.start = bound(1);
  bounds.stop = bound(2);
  bounds.step = bound(3);
  return sliced(subject, bounds, meter_);
}

Arguments Render::evaluate_arguments(const Expression& expression) {
  Arguments arguments;
  for (std::size_t i = 1; i < expression.parts.size(); ++i)
    arguments.plain.push_back(evaluate(*expression.parts[i]));
  for (const auto& [name, value] : expression.named) arguments.named.emplace_back(name, evaluate(*value));
  return arguments;
}

Value Render::evaluate_call(const Expression& expression) {
  const Value callee = evaluate(*expression.parts[0]);
  return call(callee, evaluate_arguments(expression));
}

Value Render::call(const Value& callee, Arguments arguments) {
  if (callee.is_undefined()) throw Fault(callee.undefined_text());
  if (!callee.is_callable())
    throw Fault(fmt::format("a value of type {} cannot be called", callee.type_name()));
  return callee.callable().call(*this, std::move(arguments));
}

Value Render::evaluate_filter(const Expression& expression) {
  if (expression.parts[0] == nullptr) {
    // The arguments may hold blocks of their own only within macros, which hide this one.
    const Value subject = *filtered_;
    return filter(expression.name, subject, evaluate_arguments(expression));
  }
  const Value subject = evaluate(*expression.parts[0]);
  return filter(expression.name, subject, evaluate_arguments(expression));
}

Value Render::filter(std::string_view name, const Value& subject, Arguments arguments) {
  const Row* row = find_filter(name);
  if (row == nullptr) throw Fault(fmt::format("unknown filter '{}'", name));
  if (subject.is_string()) meter_.work(subject.text().size());
  return row->apply(*this, subject, Bound(row->name, row->parameters, std::move(arguments)));
}

bool Render::test(std::string_view name, const Value& subject, Arguments arguments) {
  const Row* row = find_row(tests(), name);
  if (row == nullptr) throw Fault(fmt::format("unknown test '{}'", name));
  if (subject.is_string()) meter_.work(subject.text().size());
  return row->apply(*this, subject, Bound(row->name, row->parameters, std::move(arguments))).truth();
}

Value Render::evaluate_compare(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    if (!compared(expression.operators[i], left, right, meter_)) return false;
    left = std::move(right);
  }
  return true;
}

Value Render::evaluate_concat(const Expression& expression) {
  MarkedText joined;
  std::vector<Value> values;
  for (const ExpressionPtr& part : expression.parts) values.push_back(evaluate(*part));
  for (const Value& value : values) {
    if (value.is_string()) {
      joined.append(value.text());
    } else {
      joined.append(print(value));
    }
    meter_.check_value(joined.size());
  }
  return text(std::move(joined));
}

Value Render::method(const Value& value, std::string_view name) {
  const Row* row = nullptr;
  if (value.is_string()) row = find_row(text_methods(), name);
  if (value.is_mapping()) row = find_row(dict_methods(), name);
  if (value.is_list() && value.list().is_sequence()) row = find_row(list_methods(), name);
  if (value.is_loop()) row = find_row(loop_methods(), name);
  return row != nullptr ? bound_method(*this, *row, value) : Value();
}

Value Render::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (!name.starts_with("__")) {
    if (Value found = method(value, name); !found.is_undefined()) return found;
    if (value.is_dict())
      if (const Value* member = value.dict().find(name)) return *member;
    if (value.is_loop()) return loop_attribute(value.loop(), name);
    if (value.is_callable() && value.callable().shown() == "<function dict>" && name == "fromkeys")
      return bound_method(*this, *find_row(functions(), "dict.fromkeys"), Value());
    if (value.is_list() && value.list().group && (name == "grouper" || name == "list"))
      return value.list().items[name == "list" ? 1 : 0];
  }
  return Value::undefined(fmt::format("a value of type {} has no attribute '{}'", value.type_name(), name));
}

Value Render::item(const Value& value, const Value& key) {
  if (value.is_undefined()) throw Fault(value.undefined_text());
  if (value.is_mapping()) {
    try {
      if (const Value* member = value.dict().find(key)) return *member;
    } catch (const Fault&) {  // a value that cannot be a key is none
    }
  }
  if ((key.is_integer() || key.is_boolean()) &&
      (value.is_string() || (value.is_list() && value.list().is_sequence())))
    if (auto found = element(value, key.integer(), meter_)) return *found;
  if (key.is_string() && !key.bytes().starts_with("__")) {
    if (Value found = method(value, key.bytes()); !found.is_undefined()) return found;
    if (!value.is_mapping()) return attribute(value, key.bytes());
  }
  return Value::undefined(fmt::format("a value of type {} has no such element", value.type_name()));
}

}  // namespace sluice::tokenizer::jinja
