#include "tokenizer/template/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/template/operators.h"
#include "tokenizer/template/place.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/value_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

class Macro final : public Callable {
 public:
  Macro(Meter& meter, const Statement& statement, std::shared_ptr<Scope> scope)
      : Callable(&meter), statement_(statement), scope_(std::move(scope)) {
    count(sizeof(Macro));
  }
  Value call(Render& render, Arguments arguments) override {
    return render.call_macro(statement_, scope_, std::move(arguments));
  }
  std::string shown() const override { return fmt::format("<Macro '{}'>", statement_.name); }

 private:
  const Statement& statement_;
  const std::shared_ptr<Scope> scope_;  // the names that the macro sees
};

std::optional<NameId> find_name(const Syntax& syntax, std::string_view name) {
  const auto at = std::find(syntax.names.begin(), syntax.names.end(), name);
  if (at == syntax.names.end()) return std::nullopt;
  return static_cast<NameId>(at - syntax.names.begin());
}

// Puts a value in place of another one while it lives.
template <class T>
class Replaced {
 public:
  Replaced(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Replaced() { place_ = std::move(before_); }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  T& place_;
  T before_;
};

std::shared_ptr<Scope> scope_within(const std::shared_ptr<Scope>& parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  return scope;
}

}  // namespace

const Value* Scope::find(NameId name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
    for (const auto& [id, value] : scope->values)
      if (id == name) return &value;
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  for (auto& [id, old] : values) {
    if (id != name) continue;
    old = std::move(value);
    return;
  }
  values.emplace_back(name, std::move(value));
}

Render::Render(const Syntax& syntax, std::string_view name, const Dict& variables, std::optional<std::tm> now,
               Meter& meter)
    : syntax_(syntax),
      name_(name),
      variables_(variables),
      now_(now),
      meter_(meter),
      variable_cache_(syntax.names.size()),
      loop_name_(find_name(syntax, "loop")),
      varargs_name_(find_name(syntax, "varargs")),
      kwargs_name_(find_name(syntax, "kwargs")) {}

// Scopes and changed containers may hold themselves, which no count of references ends.
Render::~Render() {
  std::vector<Value> rest;
  for (const Value& container : changed_) {
    if (container.is_list()) {
      for (Value& item : container.list().items) rest.push_back(std::move(item));
      container.list().items.clear();
    } else if (container.is_loop()) {
      container.loop().changed.reset();
    } else {
      for (auto& [key, value] : container.dict().take_members()) rest.push_back(std::move(value));
    }
  }
  for (const auto& scope : macro_scopes_)
    for (auto& [id, value] : scope->values) rest.push_back(std::move(value));
}

MarkedText Render::run() {
  MarkedText out;
  out_ = &out;
  execute(syntax_.body);
  return out;
}

void Render::write(const MarkedText& text) {
  if (text.size() > meter_.limits().output_bytes - out_->size())
    throw Fault(fmt::format("the template writes more than {} MiB", meter_.limits().output_bytes / kMiB));
  meter_.work(text.size());
  out_->append(text);
}

MarkedText Render::print(const Value& value) { return printed(value, meter_); }

Render::Flow Render::execute(const Block& block) {
  for (const Statement& statement : block)
    if (const Flow flow = execute(statement); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

Render::Flow Render::execute(const Statement& statement) {
  class Depth {
   public:
    explicit Depth(Meter& meter) : meter_(meter) { meter.enter(); }
    ~Depth() { meter_.leave(); }

   private:
    Meter& meter_;
  };
  try {
    const Depth depth(meter_);
    meter_.step();
    switch (statement.kind) {
      case Statement::Kind::kText:
        write(statement.value->constant.text());
        break;
      case Statement::Kind::kOutput: {
        const Value value = evaluate(*statement.value);
        if (value.is_string()) {
          write(value.text());
        } else {
          write(print(value));
        }
        break;
      }
      case Statement::Kind::kIf:
        return execute_if(statement);
      case Statement::Kind::kFor:
        return execute_for(statement);
      case Statement::Kind::kSet:
        assign(statement.target, evaluate(*statement.value));
        break;
      case Statement::Kind::kSetBlock:
      case Statement::Kind::kFilterBlock:
        return execute_set_block(statement);
      case Statement::Kind::kMacro:
        scope_->set(statement.name_id,
                    Value(std::shared_ptr<Callable>(std::make_shared<Macro>(meter_, statement, scope_))));
        macro_scopes_.push_back(scope_);
        break;
      case Statement::Kind::kScope:
        return execute_scope(statement);
      case Statement::Kind::kBreak:
        return Flow::kBreak;
      case Statement::Kind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kNext;
  } catch (const Fault& fault) {
    throw template_error(name_, statement.place, fault.message);
  }
}

Render::Flow Render::execute_if(const Statement& statement) {
  for (const Branch& branch : statement.branches)
    if (branch.condition == nullptr || evaluate(*branch.condition).truth()) return execute(branch.body);
  return Flow::kNext;
}

Render::Flow Render::execute_for(const Statement& statement) {
  std::vector<Value> items = iterate(evaluate(*statement.value));
  const std::shared_ptr<Scope> outer = scope_;
  if (statement.condition != nullptr) {
    std::vector<Value> chosen;
    for (Value& item : items) {
      const Replaced within(scope_, scope_within(outer));
      assign(statement.target, item);
      if (evaluate(*statement.condition).truth()) chosen.push_back(std::move(item));
    }
    items = std::move(chosen);
  }
  bool completed = false;  // an iteration reached the end of the body
  const auto loop = std::make_shared<Loop>(&meter_, std::move(items));
  for (std::size_t i = 0; i < loop->items.size(); ++i) {
    meter_.step();
    loop->index0 = i;
    const Replaced within(scope_, scope_within(outer));
    if (loop_name_) scope_->set(*loop_name_, Value(loop));
    assign(statement.target, loop->items[i]);
    const Flow flow = execute(statement.body);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  // As in jinja2, where `break` and `continue` also leave it open whether the loop ran.
  if (completed) return Flow::kNext;
  const Replaced within(scope_, scope_within(outer));
  return execute(statement.otherwise);
}

Render::Flow Render::capture(const Block& block, MarkedText& text) {
  MarkedText written;
  Flow flow = Flow::kNext;
  {
    const Replaced within(scope_, scope_within(scope_));
    const Replaced out(out_, &written);
    flow = execute(block);
  }
  if (flow == Flow::kNext) text = std::move(written);
  return flow;
}

Render::Flow Render::execute_set_block(const Statement& statement) {
  MarkedText written;
  if (const Flow flow = capture(statement.body, written); flow != Flow::kNext) return flow;
  Value value = text(std::move(written));
  if (statement.value != nullptr) {
    const Value* block = &value;
    const Replaced hole(filtered_, block);
    value = evaluate(*statement.value);
  }
  if (statement.kind == Statement::Kind::kSetBlock) {
    assign(statement.target, value);
  } else {
    write(print(value));
  }
  return Flow::kNext;
}

Render::Flow Render::execute_scope(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& [target, expression] : statement.with) values.push_back(evaluate(*expression));
  const Replaced within(scope_, scope_within(scope_));
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.with[i].first, values[i]);
  return execute(statement.body);
}

void Render::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::kName:
      scope_->set(target.name_id, value);
      return;
    case Target::Kind::kAttribute: {
      const Value* space = scope_->find(target.name_id);
      if (space == nullptr || !space->is_dict() || !space->dict().name_space)
        throw template_error(name_, target.place,
                             fmt::format("'{}' is no namespace, so its attributes cannot be set",
                                         syntax_.names[target.name_id]));
      if (target.attribute.starts_with('_'))
        throw template_error(name_, target.place, "attributes that begin with '_' cannot be set");
      keep_changed(*space);
      space->dict().set(target.attribute, value);
      return;
    }
    case Target::Kind::kTuple: {
      const std::vector<Value> items = iterate(value);
      if (items.size() != target.parts.size())
        throw template_error(
            name_, target.place,
            fmt::format("expected {} values to assign, found {}", target.parts.size(), items.size()));
      for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
      return;
    }
  }
}

Value Render::call_macro(const Statement& macro, const std::shared_ptr<Scope>& scope, Arguments arguments) {
  class Call {
   public:
    explicit Call(Meter& meter) : meter_(meter) { meter.enter_call(); }
    ~Call() { meter_.leave_call(); }

   private:
    Meter& meter_;
  };
  const Call call(meter_);
  MarkedText written;
  const Replaced within(scope_, scope_within(scope));
  const std::size_t count = macro.parameters.size();
  std::vector<Value> more;
  if (arguments.plain.size() > count) {
    if (!macro.takes_varargs)
      throw Fault(fmt::format("macro '{}': expected at most {} arguments, found {}", macro.name, count,
                              arguments.plain.size()));
    more.assign(arguments.plain.begin() + static_cast<std::ptrdiff_t>(count), arguments.plain.end());
    arguments.plain.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    const std::string& name = syntax_.names[parameter.name_id];
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (i < arguments.plain.size()) {
      scope_->set(parameter.name_id, std::move(arguments.plain[i]));
    } else if (named != arguments.named.end()) {
      scope_->set(parameter.name_id, std::move(named->second));
      arguments.named.erase(named);
    } else if (parameter.fallback != nullptr) {
      scope_->set(parameter.name_id, evaluate(*parameter.fallback));
    } else {
      scope_->set(parameter.name_id, Value::undefined(fmt::format("parameter '{}' was not given", name)));
    }
  }
  if (macro.takes_varargs) scope_->set(*varargs_name_, list(std::move(more), ListKind::kTuple));
  if (macro.takes_kwargs) {
    auto rest = std::make_shared<Dict>(&meter_);
    for (auto& [name, value] : arguments.named) rest->set(name, std::move(value));
    scope_->set(*kwargs_name_, Value(std::move(rest)));
  } else if (!arguments.named.empty()) {
    throw Fault(fmt::format("macro '{}': unknown argument {}", macro.name, arguments.named[0].first));
  }
  const Value* nothing = nullptr;
  const Replaced hole(filtered_, nothing);
  const Replaced out(out_, &written);
  execute(macro.body);
  return text(std::move(written));
}

std::vector<Value> Render::iterate(const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (value.is_list()) {
    List& source = value.list();
    if (source.kind != ListKind::kIterator) {
      items = source.items;
    } else {
      items.assign(source.items.begin() + static_cast<std::ptrdiff_t>(source.next), source.items.end());
      source.next = source.items.size();
      if (!source.fault.empty()) throw Fault(source.fault);
    }
    meter_.work(items.size() * sizeof(Value));
    return items;
  }
  if (value.is_mapping()) {
    for (const auto& [key, member] : value.dict().members()) items.push_back(key);
    meter_.work(items.size() * sizeof(Value));
    return items;
  }
  if (value.is_string()) {
    const std::string_view bytes = value.bytes();
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = at + decode_valid_utf8(bytes.substr(at)).length;
      items.push_back(text(value.text().part(at, end)));
      at = end;
    }
    return items;
  }
  throw Fault(fmt::format("a value of type {} has no elements to iterate over", value.type_name()));
}

void Render::keep_changed(const Value& container) {
  const bool known =
      std::any_of(changed_.rbegin(), changed_.rbegin() + std::min<std::ptrdiff_t>(8, std::ssize(changed_)),
                  [&](const Value& one) { return one.address() == container.address(); });
  if (!known) changed_.push_back(container);
}

std::tm Render::now() const {
  if (now_) return *now_;
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

}  // namespace sluice::tokenizer::jinja
