// The values of the template language: those of Python that chat templates meet.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/template/fault.h"
#include "tokenizer/template/meter.h"
#include "tokenizer/text/marked_text.h"

namespace sluice::tokenizer::jinja {

class Callable;
class Dict;
class List;
class Loop;
class Text;

// A value that is absent: it prints nothing and is false, but has no attributes.
struct Undefined {
  std::shared_ptr<const std::string> what;  // for the message of an error: "'x' is undefined"
};
struct None {};

// Copies share what they hold; strings, tuples and numbers never change. Thread-compatible.
class Value {
 public:
  Value() = default;  // undefined, of nothing that has a name
  Value(None) : data_(None{}) {}
  template <std::same_as<bool> T>  // alone: pointers would become booleans, too
  Value(T value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::shared_ptr<const Text> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<List> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Dict> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Loop> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Callable> value) : data_(std::move(value)) {}
  static Value undefined(std::string what);
  // A string that belongs to no render: of the template's source, or of a request.
  static Value string(std::string bytes, Origin origin = Origin::kTemplate);
  static Value string(MarkedText text);
  // A string whose special characters of HTML are escaped: what the filters `safe` and `e` give. What is
  // added to it is escaped, too.
  static Value markup(Meter* meter, MarkedText text);

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_boolean() const { return is<bool>(); }
  bool is_integer() const { return is<std::int64_t>(); }  // booleans are not
  bool is_real() const { return is<double>(); }
  bool is_number() const { return is_integer() || is_real() || is_boolean(); }
  bool is_string() const { return is<std::shared_ptr<const Text>>(); }
  bool is_markup() const;                                       // a string of the filters `safe` and `e`
  bool is_list() const { return is<std::shared_ptr<List>>(); }  // any kind of list
  bool is_dict() const { return is<std::shared_ptr<Dict>>(); }  // also a namespace
  bool is_mapping() const;                                      // a dictionary that is no namespace
  bool is_loop() const { return is<std::shared_ptr<Loop>>(); }
  bool is_callable() const { return is<std::shared_ptr<Callable>>(); }

  // REQUIRES: it is one
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return is_boolean() ? boolean() : std::get<std::int64_t>(data_); }
  double real() const { return is_real() ? std::get<double>(data_) : static_cast<double>(integer()); }
  const MarkedText& text() const;
  std::string_view bytes() const { return text().bytes(); }
  List& list() const { return *std::get<std::shared_ptr<List>>(data_); }
  Dict& dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  Loop& loop() const { return *std::get<std::shared_ptr<Loop>>(data_); }
  Callable& callable() const { return *std::get<std::shared_ptr<Callable>>(data_); }

  std::string_view type_name() const;  // as Python calls it: "str", "list", "NoneType"
  // The error of using an undefined value as if it were one: "'x' is undefined".
  std::string undefined_text() const;
  bool truth() const;
  const void* address() const;  // where what is shared lies; null for values that are not
  unsigned depth() const;       // levels of containers that it consists of, when they were made

 private:
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Loop>, std::shared_ptr<Callable>>
      data_;
};

// What a value shares. Memory is counted where a render made it; that render's meter outlives it.
class Object {
 public:
  explicit Object(Meter* meter) : meter_(meter) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() {
    if (meter_ != nullptr) meter_->shrink(counted_);
  }
  void count(std::size_t bytes);  // more bytes; Fault

 protected:
  void grow(std::size_t bytes);  // likewise, without the limit of one value

 private:
  Meter* meter_;
  std::size_t counted_ = 0;
};

class Text final : public Object {
 public:
  Text(Meter* meter, MarkedText content, bool is_markup = false);
  const MarkedText text;
  const bool markup;
};

enum class ListKind {
  kList,
  kTuple,
  kRange,
  kKeys,  // the views that a dictionary's methods give
  kValues,
  kItems,
  kIterator  // what map, select and other filters give: it can be read once, and has no length
};

// Whether a template may change a container: those of the request stay as they are.
enum class Frozen { kNo, kYes };

class List final : public Object {
 public:
  List(Meter* meter, ListKind list_kind, std::vector<Value> values, Frozen is_frozen = Frozen::kNo);
  void insert(std::size_t at, Value value);  // Fault
  bool is_sequence() const {
    return kind == ListKind::kList || kind == ListKind::kTuple || kind == ListKind::kRange;
  }

  const ListKind kind;
  const Frozen frozen;
  bool group = false;  // a tuple of the filter groupby, whose elements are `grouper` and `list`
  std::vector<Value> items;
  std::size_t next = 0;  // for an iterator, the first element that has not been read
  std::string fault;     // for an iterator, what goes wrong behind the last element; empty: nothing
  unsigned depth = 1;
};

// Keys in the order in which they came.
class Dict final : public Object {
 public:
  explicit Dict(Meter* meter, Frozen is_frozen = Frozen::kNo) : Object(meter), frozen(is_frozen) {}
  const Value* find(const Value& key) const;  // Fault if it cannot be a key
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);  // Fault
  void set(std::string_view key, Value value) { set(Value::string(std::string(key)), std::move(value)); }
  std::optional<Value> remove(const Value& key);
  const std::vector<std::pair<Value, Value>>& members() const { return members_; }
  std::vector<std::pair<Value, Value>> take_members();

  const Frozen frozen;
  bool name_space = false;  // made by namespace()
  unsigned depth = 1;

 private:
  std::vector<std::pair<Value, Value>> members_;
  std::unordered_map<std::string, std::size_t> places_;  // by key, as key_text() writes it
};

// The variable `loop`.
class Loop final : public Object {
 public:
  Loop(Meter* meter, std::vector<Value> values) : Object(meter), items(std::move(values)) {}
  std::vector<Value> items;
  std::size_t index0 = 0;
  std::optional<std::vector<Value>> changed;  // what loop.changed() was last asked
};

class Render;
struct Arguments {
  std::vector<Value> plain;
  std::vector<std::pair<std::string, Value>> named;
};

class Callable : public Object {
 public:
  using Object::Object;
  virtual Value call(Render& render, Arguments arguments) = 0;
  virtual std::string shown() const = 0;  // what is printed
};

// Values of a render, whose memory `meter` counts. `meter` may be null.
Value make_text(Meter* meter, MarkedText text);
Value make_text(Meter* meter, std::string bytes);  // text of the template
Value make_list(Meter* meter, std::vector<Value> items, ListKind kind = ListKind::kList);

}  // namespace sluice::tokenizer::jinja
