// One rendering of a template: the state of its evaluation, and what filters, tests and methods may ask of
// it.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/template/meter.h"
#include "tokenizer/template/syntax.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

// Names and values of a block. Thread-compatible.
struct Scope {
  std::shared_ptr<Scope> parent;  // shared with macros, which see the scope that they were made in
  std::vector<std::pair<NameId, Value>> values;

  const Value* find(NameId name) const;  // here and in the parents
  void set(NameId name, Value value);
};

class Render {
 public:
  // All must outlive this. `name` stands for the template in errors.
  Render(const Syntax& syntax, std::string_view name, const Dict& variables, std::optional<std::tm> now,
         Meter& meter);
  ~Render();
  Render(const Render&) = delete;
  Render& operator=(const Render&) = delete;

  MarkedText run();  // Error(kInvalid) naming the place

  // Everything below is for filters, tests, methods and functions, and throws Fault or Error.
  Meter& meter() { return meter_; }
  Value text(MarkedText text) { return make_text(&meter_, std::move(text)); }
  Value text(std::string bytes) { return make_text(&meter_, std::move(bytes)); }
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList) {
    return make_list(&meter_, std::move(items), kind);
  }
  MarkedText print(const Value& value);

  // The elements of what can be iterated over; those of an iterator are then used up.
  std::vector<Value> iterate(const Value& value);
  Value attribute(const Value& value, std::string_view name);  // value.name: methods first, then keys
  Value item(const Value& value, const Value& key);            // value[key]: keys first
  Value call(const Value& callee, Arguments arguments);
  Value filter(std::string_view name, const Value& subject, Arguments arguments);
  bool test(std::string_view name, const Value& subject, Arguments arguments);
  // A container that a template has changed may hold itself: it is kept, and emptied at the end.
  void keep_changed(const Value& container);
  std::tm now() const;
  // Calls a macro, which was made in `scope`.
  Value call_macro(const Statement& macro, const std::shared_ptr<Scope>& scope, Arguments arguments);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Flow execute(const Block& block);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  Flow execute_set_block(const Statement& statement);
  Flow execute_scope(const Statement& statement);
  void assign(const Target& target, const Value& value);
  // The text that a block writes, evaluated in a scope of its own; empty if it ends in another flow.
  Flow capture(const Block& block, MarkedText& text);
  void write(const MarkedText& text);

  Value evaluate(const Expression& expression);
  Value evaluate_kind(const Expression& expression);
  Value variable(const Expression& expression);
  Value evaluate_list(const Expression& expression, ListKind kind);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_call(const Expression& expression);
  Value evaluate_filter(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Value evaluate_concat(const Expression& expression);
  Arguments evaluate_arguments(const Expression& expression);
  Value method(const Value& value, std::string_view name);

  const Syntax& syntax_;
  std::string_view name_;
  const Dict& variables_;
  const std::optional<std::tm> now_;
  Meter& meter_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<std::shared_ptr<Scope>> macro_scopes_;  // those that hold macros, which hold them
  std::vector<Value> changed_;
  std::vector<std::optional<Value>> variable_cache_;  // by name, of variables and functions
  std::optional<NameId> loop_name_, varargs_name_, kwargs_name_;
  MarkedText* out_ = nullptr;
  const Value* filtered_ = nullptr;  // what a block to be filtered has written
};

}  // namespace sluice::tokenizer::jinja
