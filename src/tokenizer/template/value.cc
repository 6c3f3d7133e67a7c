#include "tokenizer/template/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/template/number_text.h"

namespace sluice::tokenizer::jinja {
namespace {

constexpr std::size_t kMostDepth = TemplateLimits{}.nesting;

void check_depth(unsigned depth) {
  if (depth > kMostDepth) throw Fault(fmt::format("values nest more than {} deep", kMostDepth));
}

// Equal keys, and those alone, have equal texts: 1, 1.0 and true are one key.
std::string key_text(const Value& key) {
  if (key.is_string()) return "s" + std::string(key.bytes());
  if (key.is_none()) return "z";
  if (key.is_integer() || key.is_boolean()) return "n" + std::to_string(key.integer());
  if (key.is_real()) {
    const double real = key.real();
    if (std::trunc(real) == real && std::abs(real) < 9.2e18)
      return "n" + std::to_string(static_cast<std::int64_t>(real));
    return "f" + real_text(real);
  }
  if (key.is_list() && key.list().kind == ListKind::kTuple) {
    std::string text = "t";
    for (const Value& item : key.list().items) {
      const std::string part = key_text(item);
      text += std::to_string(part.size()) + ":" + part;
    }
    return text;
  }
  if (key.is_undefined()) return "u";
  throw Fault(fmt::format("a value of type {} cannot be a key", key.type_name()));
}

}  // namespace

Value Value::undefined(std::string what) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(what))};
  return value;
}

Value Value::string(std::string bytes, Origin origin) { return string(MarkedText(std::move(bytes), origin)); }

Value Value::string(MarkedText text) { return make_text(nullptr, std::move(text)); }

Value Value::markup(Meter* meter, MarkedText text) {
  return Value(std::make_shared<const Text>(meter, std::move(text), true));
}

bool Value::is_markup() const { return is_string() && std::get<std::shared_ptr<const Text>>(data_)->markup; }

const MarkedText& Value::text() const { return std::get<std::shared_ptr<const Text>>(data_)->text; }

bool Value::is_mapping() const { return is_dict() && !dict().name_space; }

std::string_view Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_boolean()) return "bool";
  if (is_integer()) return "int";
  if (is_real()) return "float";
  if (is_string()) return "str";
  if (is_dict()) return dict().name_space ? "Namespace" : "dict";
  if (is_loop()) return "LoopContext";
  if (is_callable()) return "function";
  switch (list().kind) {
    case ListKind::kList:
      return "list";
    case ListKind::kTuple:
      return "tuple";
    case ListKind::kRange:
      return "range";
    case ListKind::kKeys:
      return "dict_keys";
    case ListKind::kValues:
      return "dict_values";
    case ListKind::kItems:
      return "dict_items";
    case ListKind::kIterator:
      break;
  }
  return "generator";
}

std::string Value::undefined_text() const {
  const auto& undefined = std::get<Undefined>(data_);
  return undefined.what != nullptr ? *undefined.what : "an undefined value is used";
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_boolean()) return boolean();
  if (is_integer()) return integer() != 0;
  if (is_real()) return real() != 0;
  if (is_string()) return !text().empty();
  if (is_list()) return list().kind == ListKind::kIterator || !list().items.empty();
  if (is_dict()) return dict().name_space || !dict().members().empty();
  return true;
}

const void* Value::address() const {
  if (is_string()) return std::get<std::shared_ptr<const Text>>(data_).get();
  if (is_list()) return &list();
  if (is_dict()) return &dict();
  if (is_loop()) return &loop();
  return is_callable() ? &callable() : nullptr;
}

unsigned Value::depth() const {
  if (is_list()) return list().depth;
  return is_dict() ? dict().depth : 0;
}

void Object::count(std::size_t bytes) {
  if (meter_ == nullptr) return;
  meter_->check_value(counted_ + bytes);
  grow(bytes);
}

void Object::grow(std::size_t bytes) {
  if (meter_ == nullptr) return;
  meter_->grow(bytes);
  counted_ += bytes;
}

Text::Text(Meter* meter, MarkedText content, bool is_markup)
    : Object(meter), text(std::move(content)), markup(is_markup) {
  if (meter != nullptr) meter->check_value(text.size());
  grow(sizeof(Text) + text.size() + text.request().size() * sizeof(ByteRange));
}

List::List(Meter* meter, ListKind list_kind, std::vector<Value> values, Frozen is_frozen)
    : Object(meter), kind(list_kind), frozen(is_frozen), items(std::move(values)) {
  count(sizeof(List) + items.size() * sizeof(Value));
  for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
  check_depth(depth);
}

void List::insert(std::size_t at, Value value) {
  count(sizeof(Value));
  depth = std::max(depth, value.depth() + 1);
  check_depth(depth);
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), std::move(value));
}

const Value* Dict::find(const Value& key) const {
  const auto at = places_.find(key_text(key));
  return at == places_.end() ? nullptr : &members_[at->second].second;
}

const Value* Dict::find(std::string_view key) const {
  std::string text = "s";
  text += key;
  const auto at = places_.find(text);
  return at == places_.end() ? nullptr : &members_[at->second].second;
}

void Dict::set(Value key, Value value) {
  depth = std::max(depth, value.depth() + 1);
  check_depth(depth);
  std::string text = key_text(key);
  const auto at = places_.find(text);
  if (at != places_.end()) {
    members_[at->second].second = std::move(value);
    return;
  }
  count(text.size() + 128);
  members_.emplace_back(std::move(key), std::move(value));
  places_.emplace(std::move(text), members_.size() - 1);
}

std::optional<Value> Dict::remove(const Value& key) {
  const auto at = places_.find(key_text(key));
  if (at == places_.end()) return std::nullopt;
  const std::size_t place = at->second;
  Value value = std::move(members_[place].second);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(place));
  places_.erase(at);
  for (auto& [text, other] : places_)
    if (other > place) --other;
  return value;
}

std::vector<std::pair<Value, Value>> Dict::take_members() {
  places_.clear();
  return std::exchange(members_, {});
}

Value make_text(Meter* meter, MarkedText text) {
  return Value(std::make_shared<const Text>(meter, std::move(text)));
}

Value make_text(Meter* meter, std::string bytes) { return make_text(meter, MarkedText(std::move(bytes))); }

Value make_list(Meter* meter, std::vector<Value> items, ListKind kind) {
  return Value(std::make_shared<List>(meter, kind, std::move(items)));
}

}  // namespace sluice::tokenizer::jinja
