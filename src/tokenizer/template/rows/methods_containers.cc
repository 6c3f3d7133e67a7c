// Methods of dictionaries, lists and the variable `loop`.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/template/rows.h"
#include "tokenizer/template/value_text.h"

namespace sluice::tokenizer::jinja {
namespace {

using A = const Bound&;
using V = const Value&;

Value method_get(Render&, V self, A arguments) {
  if (const Value* value = self.dict().find(arguments[0])) return *value;
  return arguments.given(1) ? arguments[1] : Value(None{});
}

Value method_keys(Render& render, V self, A) {
  std::vector<Value> keys;
  for (const auto& [key, value] : self.dict().members()) keys.push_back(key);
  return render.list(std::move(keys), ListKind::kKeys);
}
Value method_values(Render& render, V self, A) {
  std::vector<Value> values;
  for (const auto& [key, value] : self.dict().members()) values.push_back(value);
  return render.list(std::move(values), ListKind::kValues);
}
Value method_items(Render& render, V self, A) {
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().members())
    items.push_back(render.list({key, value}, ListKind::kTuple));
  return render.list(std::move(items), ListKind::kItems);
}
Value method_copy(Render& render, V self, A) {
  auto copy = std::make_shared<Dict>(&render.meter());
  for (const auto& [key, value] : self.dict().members()) copy->set(key, value);
  return Value(std::move(copy));
}

void check_can_change(Render& render, V self, std::string_view method) {
  const bool frozen = self.is_list()
                          ? self.list().frozen == Frozen::kYes || self.list().kind != ListKind::kList
                          : self.dict().frozen == Frozen::kYes;
  if (frozen)
    throw Fault(
        fmt::format("{}: only lists and dictionaries that the template has made can be changed", method));
  render.keep_changed(self);
}

Value method_dict_pop(Render& render, V self, A arguments) {
  check_can_change(render, self, "pop");
  if (auto value = self.dict().remove(arguments[0])) return *value;
  if (!arguments.given(1)) throw Fault("pop: there is no such key");
  return arguments[1];
}
Value method_update(Render& render, V self, A arguments) {
  check_can_change(render, self, "update");
  if (arguments.all.plain.size() > 1) throw Fault("update: expected at most one dictionary");
  for (const Value& other : arguments.all.plain) {
    if (!other.is_mapping())
      throw Fault(fmt::format("update: expected a dictionary, found a value of type {}", other.type_name()));
    const auto members = other.dict().members();
    for (const auto& [key, value] : members) self.dict().set(key, value);
  }
  for (const auto& [name, value] : arguments.all.named) self.dict().set(name, value);
  return None{};
}
Value method_setdefault(Render& render, V self, A arguments) {
  check_can_change(render, self, "setdefault");
  if (const Value* value = self.dict().find(arguments[0])) return *value;
  const Value value = arguments.given(1) ? arguments[1] : Value(None{});
  self.dict().set(arguments[0], value);
  return value;
}
Value method_refused(Render&, V, A arguments) {
  throw Fault(fmt::format("the method {} is not supported in chat templates", arguments.what()));
}

Value method_list_index(Render& render, V self, A arguments) {
  const auto& items = self.list().items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], arguments[0], render.meter())) return static_cast<std::int64_t>(i);
  throw Fault("index: the value is not there");
}
Value method_list_count(Render& render, V self, A arguments) {
  std::int64_t count = 0;
  for (const Value& item : self.list().items) count += equal(item, arguments[0], render.meter()) ? 1 : 0;
  return count;
}
Value method_append(Render& render, V self, A arguments) {
  check_can_change(render, self, "append");
  self.list().insert(self.list().items.size(), arguments[0]);
  return None{};
}
Value method_extend(Render& render, V self, A arguments) {
  check_can_change(render, self, "extend");
  for (const Value& item : render.iterate(arguments[0])) self.list().insert(self.list().items.size(), item);
  return None{};
}
// The place that an index names, which counts from the end if negative.
std::int64_t place_of(V self, std::int64_t index) {
  return index < 0 ? index + std::ssize(self.list().items) : index;
}
Value method_insert(Render& render, V self, A arguments) {
  check_can_change(render, self, "insert");
  const std::int64_t size = std::ssize(self.list().items);
  const std::int64_t at = std::clamp<std::int64_t>(place_of(self, arguments.integer(0)), 0, size);
  render.meter().work(static_cast<std::size_t>(size - at) * sizeof(Value));
  self.list().insert(static_cast<std::size_t>(at), arguments[1]);
  return None{};
}
Value method_list_pop(Render& render, V self, A arguments) {
  check_can_change(render, self, "pop");
  auto& items = self.list().items;
  const std::int64_t at = place_of(self, arguments.integer(0, -1));
  if (at < 0 || at >= std::ssize(items)) throw Fault("pop: there is no such element");
  Value value = items[static_cast<std::size_t>(at)];
  items.erase(items.begin() + at);
  return value;
}

Value method_cycle(Render&, V self, A arguments) {
  const auto& values = arguments.all.plain;
  if (values.empty()) throw Fault("cycle: expected some values");
  return values[self.loop().index0 % values.size()];
}
Value method_changed(Render& render, V self, A arguments) {
  auto& before = self.loop().changed;
  const auto& values = arguments.all.plain;
  bool same = before && before->size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i)
    same = equal((*before)[i], values[i], render.meter());
  if (same) return false;
  render.keep_changed(self);
  before = values;
  return true;
}

constexpr Row kDictMethods[] = {
    {"clear", "*", method_refused},
    {"copy", "", method_copy},
    {"fromkeys", "*", method_refused},
    {"get", "key default?", method_get},
    {"items", "", method_items},
    {"keys", "", method_keys},
    {"pop", "key default?", method_dict_pop},
    {"popitem", "*", method_refused},
    {"setdefault", "key default?", method_setdefault},
    {"update", "*", method_update},
    {"values", "", method_values},
};

constexpr Row kListMethods[] = {
    {"append", "object", method_append},       {"count", "value", method_list_count},
    {"extend", "iterable", method_extend},     {"index", "value", method_list_index},
    {"insert", "index object", method_insert}, {"pop", "index?", method_list_pop},
};

constexpr Row kLoopMethods[] = {{"changed", "*", method_changed}, {"cycle", "*", method_cycle}};

}  // namespace

std::span<const Row> dict_methods() { return kDictMethods; }
std::span<const Row> list_methods() { return kListMethods; }
std::span<const Row> loop_methods() { return kLoopMethods; }

}  // namespace sluice::tokenizer::jinja
