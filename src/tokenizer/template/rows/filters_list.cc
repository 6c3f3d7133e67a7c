// Filters of lists and dictionaries.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/number_text.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/rows.h"
#include "tokenizer/template/value_text.h"

namespace sluice::tokenizer::jinja {
namespace {

// What an argument `attribute` names: "a.b" or 0, asked of each element in turn.
class AttributePath {
 public:
  AttributePath() = default;
  explicit AttributePath(const Value& attribute) {
    if (!attribute.is_string()) {
      parts_.push_back(attribute);
      return;
    }
    std::string_view rest = attribute.bytes();
    for (;;) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      const auto index = digits ? read_integer(part) : std::nullopt;
      parts_.push_back(index ? Value(*index) : Value::string(std::string(part)));
      if (dot == rest.size()) return;
      rest.remove_prefix(dot + 1);
    }
  }

  Value of(Render& render, Value value, const Value* otherwise = nullptr) const {
    for (const Value& part : parts_) {
      render.meter().step();
      value = render.item(value, part);
      if (otherwise != nullptr && value.is_undefined()) value = *otherwise;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
};

AttributePath path_of(const Bound& arguments, std::size_t i) {
  return arguments.given_some(i) ? AttributePath(arguments[i]) : AttributePath();
}

Value without_case(Render& render, const Value& value, bool case_sensitive) {
  return value.is_string() && !case_sensitive ? render.text(lower_case(value.text())) : value;
}

struct Keyed {
  Value key, value;
};

void sort_by_key(Render& render, std::vector<Keyed>& items, bool reverse) {
  // Equal elements keep their order, also where the order is reversed.
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? ordered(b.key, a.key, "<", render.meter()) < 0
                   : ordered(a.key, b.key, "<", render.meter()) < 0;
  });
}

// Filters that give an iterator do their work when that is read, so what goes wrong then is told then.
// `fill(items)` adds the elements.
template <class Fill>
Value lazily(Render& render, Fill fill) {
  std::vector<Value> items;
  std::string fault;
  try {
    fill(items);
  } catch (const Fault& found) {
    fault = found.message;
  }
  Value iterator = render.list(std::move(items), ListKind::kIterator);
  iterator.list().fault = std::move(fault);
  return iterator;
}

Value filter_length(Render&, const Value& subject, const Bound&) {
  if (subject.is_undefined()) return 0;
  if (subject.is_string()) return static_cast<std::int64_t>(count_chars(subject.bytes()));
  if (subject.is_mapping()) return std::ssize(subject.dict().members());
  if (subject.is_list() && subject.list().kind != ListKind::kIterator)
    return std::ssize(subject.list().items);
  if (subject.is_loop()) return std::ssize(subject.loop().items);
  throw Fault(fmt::format("a value of type {} has no length", subject.type_name()));
}

Value filter_items(Render& render, const Value& subject, const Bound&) {
  return lazily(render, [&](std::vector<Value>& items) {
    if (subject.is_undefined()) return;
    if (!subject.is_mapping())
      throw Fault(fmt::format("items: expected a dictionary, found a value of type {}", subject.type_name()));
    for (const auto& [key, value] : subject.dict().members())
      items.push_back(render.list({key, value}, ListKind::kTuple));
  });
}

Value filter_list(Render& render, const Value& subject, const Bound&) {
  return render.list(render.iterate(subject));
}

Value filter_join(Render& render, const Value& subject, const Bound& arguments) {
  const AttributePath path = path_of(arguments, 1);
  const MarkedText separator = arguments.given(0) ? render.print(arguments[0]) : MarkedText();
  MarkedText joined;
  bool first = true;
  for (const Value& item : render.iterate(subject)) {
    render.meter().step();
    if (!first) joined.append(separator);
    first = false;
    joined.append(render.print(path.of(render, item)));
    render.meter().check_value(joined.size());
  }
  return render.text(std::move(joined));
}

Value filter_first(Render& render, const Value& subject, const Bound&) {
  if (subject.is_list()) {
    List& list = subject.list();
    const std::size_t at = list.kind == ListKind::kIterator ? list.next : 0;
    if (at >= list.items.size() && !list.fault.empty()) throw Fault(list.fault);
    if (at >= list.items.size()) return Value::undefined("there is no first item");
    if (list.kind == ListKind::kIterator) ++list.next;
    return list.items[at];
  }
  if (subject.is_string() && !subject.text().empty()) return *element(subject, 0, render.meter());
  const std::vector<Value> items = render.iterate(subject);
  return items.empty() ? Value::undefined("there is no first item") : items.front();
}

Value filter_last(Render& render, const Value& subject, const Bound&) {
  if (subject.is_list() && subject.list().kind == ListKind::kIterator)
    throw Fault("last: a value that can be read only once has no last item");
  if (subject.is_string() && !subject.text().empty()) return *element(subject, -1, render.meter());
  const std::vector<Value> items = render.iterate(subject);
  return items.empty() ? Value::undefined("there is no last item") : items.back();
}

Value filter_reverse(Render& render, const Value& subject, const Bound&) {
  if (subject.is_string()) return sliced(subject, {{}, {}, -1}, render.meter());
  std::vector<Value> items = render.iterate(subject);
  std::reverse(items.begin(), items.end());
  const bool iterator = subject.is_list() && subject.list().kind == ListKind::kIterator;
  return render.list(std::move(items), iterator ? ListKind::kList : ListKind::kIterator);
}

Value filter_sort(Render& render, const Value& subject, const Bound& arguments) {
  // Several attributes have commas between them.
  std::vector<AttributePath> paths;
  if (arguments.given_some(2) && arguments[2].is_string()) {
    std::string_view rest = arguments[2].bytes();
    for (;;) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      paths.emplace_back(Value::string(std::string(rest.substr(0, comma))));
      if (comma == rest.size()) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(path_of(arguments, 2));
  }
  std::vector<Keyed> items;
  for (const Value& item : render.iterate(subject)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths)
      keys.push_back(without_case(render, path.of(render, item), arguments.truth(1)));
    items.push_back({keys.size() == 1 ? keys[0] : render.list(std::move(keys)), item});
  }
  sort_by_key(render, items, arguments.truth(0));
  std::vector<Value> sorted;
  for (Keyed& item : items) sorted.push_back(std::move(item.value));
  return render.list(std::move(sorted));
}

Value filter_dictsort(Render& render, const Value& subject, const Bound& arguments) {
  if (subject.is_undefined()) throw Fault(subject.undefined_text());
  if (!subject.is_mapping())
    throw Fault(
        fmt::format("dictsort: expected a dictionary, found a value of type {}", subject.type_name()));
  const std::string by(arguments.given(1) ? arguments.text(1).bytes() : "key");
  if (by != "key" && by != "value") throw Fault("dictsort: `by` is \"key\" or \"value\"");
  std::vector<Keyed> items;
  for (const auto& [key, value] : subject.dict().members())
    items.push_back({without_case(render, by == "key" ? key : value, arguments.truth(0)),
                     render.list({key, value}, ListKind::kTuple)});
  sort_by_key(render, items, arguments.truth(2));
  std::vector<Value> sorted;
  for (Keyed& item : items) sorted.push_back(std::move(item.value));
  return render.list(std::move(sorted));
}

Value extreme(Render& render, const Value& subject, const Bound& arguments, bool largest) {
  const AttributePath path = path_of(arguments, 1);
  std::optional<Keyed> best;
  for (const Value& item : render.iterate(subject)) {
    Value key = without_case(render, path.of(render, item), arguments.truth(0));
    if (!best || (largest ? ordered(key, best->key, ">", render.meter()) > 0
                          : ordered(key, best->key, "<", render.meter()) < 0))
      best = Keyed{std::move(key), item};
  }
  return best ? best->value : Value::undefined("there is no item");
}
Value filter_min(Render& render, const Value& subject, const Bound& arguments) {
  return extreme(render, subject, arguments, false);
}
Value filter_max(Render& render, const Value& subject, const Bound& arguments) {
  return extreme(render, subject, arguments, true);
}

Value filter_sum(Render& render, const Value& subject, const Bound& arguments) {
  const AttributePath path = path_of(arguments, 0);
  Value sum = arguments.given(1) ? arguments[1] : Value(0);
  if (sum.is_string()) throw Fault("sum: strings are joined by the filter join");
  for (const Value& item : render.iterate(subject)) {
    render.meter().step();
    sum = binary(Operator::kAdd, sum, path.of(render, item), render.meter());
  }
  return sum;
}

Value filter_unique(Render& render, const Value& subject, const Bound& arguments) {
  const AttributePath path = path_of(arguments, 1);
  return lazily(render, [&](std::vector<Value>& items) {
    Dict seen(&render.meter());
    for (const Value& item : render.iterate(subject)) {
      const Value key = without_case(render, path.of(render, item), arguments.truth(0));
      if (seen.find(key) != nullptr) continue;
      seen.set(key, true);
      items.push_back(item);
    }
  });
}

Value filter_batch(Render& render, const Value& subject, const Bound& arguments) {
  const std::int64_t size = arguments.integer(0);
  return lazily(render, [&](std::vector<Value>& batches) {
    std::vector<Value> batch;
    for (const Value& item : render.iterate(subject)) {
      if (std::ssize(batch) == size) batches.push_back(render.list(std::exchange(batch, {})));
      batch.push_back(item);
    }
    if (batch.empty()) return;
    if (arguments.given_some(1)) {
      render.meter().check_value(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)));
      while (std::ssize(batch) < size) batch.push_back(arguments[1]);
    }
    batches.push_back(render.list(std::move(batch)));
  });
}

Value filter_slice(Render& render, const Value& subject, const Bound& arguments) {
  const std::int64_t count = arguments.integer(0);
  return lazily(render, [&](std::vector<Value>& slices) {
    const std::vector<Value> items = render.iterate(subject);
    if (count == 0) throw Fault("slice: 0 slices");
    const std::int64_t each = count > 0 ? std::ssize(items) / count : 0;
    const std::int64_t longer = count > 0 ? std::ssize(items) % count : 0;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      render.meter().step();
      const std::int64_t end = begin + each + (i < longer ? 1 : 0);
      std::vector<Value> slice(items.begin() + begin, items.begin() + end);
      if (arguments.given_some(1) && i >= longer) slice.push_back(arguments[1]);
      slices.push_back(render.list(std::move(slice)));
      begin = end;
    }
  });
}

Value filter_groupby(Render& render, const Value& subject, const Bound& arguments) {
  const AttributePath path = path_of(arguments, 0);
  const Value* otherwise = arguments.given_some(1) ? &arguments[1] : nullptr;
  std::vector<Keyed> items;
  for (const Value& item : render.iterate(subject))
    items.push_back({without_case(render, path.of(render, item, otherwise), arguments.truth(2)), item});
  sort_by_key(render, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin + 1;
    while (end < items.size() && equal(items[begin].key, items[end].key, render.meter())) ++end;
    std::vector<Value> members;
    for (std::size_t i = begin; i < end; ++i) members.push_back(items[i].value);
    Value key = path.of(render, items[begin].value, otherwise);
    Value group = render.list({std::move(key), render.list(std::move(members))}, ListKind::kTuple);
    group.list().group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return render.list(std::move(groups));
}

// Arguments behind the first `count`.
Arguments behind(const Arguments& all, std::size_t count) {
  Arguments rest;
  for (std::size_t i = count; i < all.plain.size(); ++i) rest.plain.push_back(all.plain[i]);
  rest.named = all.named;
  return rest;
}

std::string name_argument(const Bound& arguments, std::size_t i) {
  const Value& value = arguments.all.plain[i];
  if (!value.is_string()) throw Fault(fmt::format("{}: expected a name as argument", arguments.what()));
  return std::string(value.bytes());
}

Value filter_map(Render& render, const Value& subject, const Bound& arguments) {
  const Arguments& all = arguments.all;
  const auto named = [&](std::string_view name) -> const Value* {
    for (const auto& [other, value] : all.named)
      if (other == name) return &value;
    return nullptr;
  };
  return lazily(render, [&](std::vector<Value>& items) {
    if (!subject.truth()) return;  // whatever it is
    const Value* attribute = named("attribute");
    if (attribute == nullptr || !all.plain.empty()) {
      if (all.plain.empty()) throw Fault("map: expected the name of a filter, or attribute=…");
      const std::string name = name_argument(arguments, 0);
      for (const Value& item : render.iterate(subject)) {
        render.meter().step();
        items.push_back(render.filter(name, item, behind(all, 1)));
      }
      return;
    }
    for (const auto& [name, value] : all.named)
      if (name != "attribute" && name != "default")
        throw Fault(fmt::format("map: unknown argument {}", name));
    const Value* otherwise = named("default");
    if (otherwise != nullptr && otherwise->is_none()) otherwise = nullptr;
    const AttributePath path(*attribute);
    for (const Value& item : render.iterate(subject)) items.push_back(path.of(render, item, otherwise));
  });
}

// select, reject, selectattr and rejectattr: `attributes` arguments come before the name of the test.
Value selected(Render& render, const Value& subject, const Bound& arguments, bool wanted,
               std::size_t attributes) {
  const Arguments& all = arguments.all;
  return lazily(render, [&](std::vector<Value>& items) {
    if (!subject.truth()) return;  // whatever it is
    if (all.plain.size() < attributes)
      throw Fault(fmt::format("{}: expected the name of an attribute", arguments.what()));
    const AttributePath path = attributes > 0 ? AttributePath(all.plain[0]) : AttributePath();
    const bool tested = all.plain.size() > attributes;
    const std::string name = tested ? name_argument(arguments, attributes) : "";
    for (const Value& item : render.iterate(subject)) {
      render.meter().step();
      const Value value = path.of(render, item);
      const bool fits = tested ? render.test(name, value, behind(all, attributes + 1)) : value.truth();
      if (fits == wanted) items.push_back(item);
    }
  });
}
Value filter_select(Render& render, const Value& subject, const Bound& arguments) {
  return selected(render, subject, arguments, true, 0);
}
Value filter_reject(Render& render, const Value& subject, const Bound& arguments) {
  return selected(render, subject, arguments, false, 0);
}
Value filter_selectattr(Render& render, const Value& subject, const Bound& arguments) {
  return selected(render, subject, arguments, true, 1);
}
Value filter_rejectattr(Render& render, const Value& subject, const Bound& arguments) {
  return selected(render, subject, arguments, false, 1);
}

constexpr Row kListFilters[] = {
    {"batch", "linecount fill_with?", filter_batch},
    {"count", "", filter_length},
    {"dictsort", "case_sensitive? by? reverse?", filter_dictsort},
    {"first", "", filter_first},
    {"groupby", "attribute default? case_sensitive?", filter_groupby},
    {"items", "", filter_items},
    {"join", "d? attribute?", filter_join},
    {"last", "", filter_last},
    {"length", "", filter_length},
    {"list", "", filter_list},
    {"map", "*", filter_map},
    {"max", "case_sensitive? attribute?", filter_max},
    {"min", "case_sensitive? attribute?", filter_min},
    {"reject", "*", filter_reject},
    {"rejectattr", "*", filter_rejectattr},
    {"reverse", "", filter_reverse},
    {"select", "*", filter_select},
    {"selectattr", "*", filter_selectattr},
    {"slice", "slices fill_with?", filter_slice},
    {"sort", "reverse? case_sensitive? attribute?", filter_sort},
    {"sum", "attribute? start?", filter_sum},
    {"unique", "case_sensitive? attribute?", filter_unique},
};

}  // namespace

std::span<const Row> list_filters() { return kListFilters; }

}  // namespace sluice::tokenizer::jinja
