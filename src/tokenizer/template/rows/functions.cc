// The functions that every template has.
#include <fmt/format.h>

#include <array>

#include "tokenizer/template/operators.h"
#include "tokenizer/template/rows.h"

namespace sluice::tokenizer::jinja {
namespace {

using A = const Bound&;
using V = const Value&;

// dict() and namespace(): members of another dictionary, or pairs, then named arguments.
std::shared_ptr<Dict> dict_of(Render& render, A arguments) {
  auto dict = std::make_shared<Dict>(&render.meter());
  if (arguments.all.plain.size() > 1)
    throw Fault(fmt::format("{}: expected at most one dictionary", arguments.what()));
  for (const Value& source : arguments.all.plain) {
    if (source.is_mapping()) {
      for (const auto& [key, value] : source.dict().members()) dict->set(key, value);
      continue;
    }
    for (const Value& pair : render.iterate(source)) {
      const std::vector<Value> items = render.iterate(pair);
      if (items.size() != 2) throw Fault(fmt::format("{}: expected pairs", arguments.what()));
      dict->set(items[0], items[1]);
    }
  }
  for (const auto& [name, value] : arguments.all.named) dict->set(name, value);
  return dict;
}

Value function_dict(Render& render, V, A arguments) { return Value(dict_of(render, arguments)); }

Value function_fromkeys(Render& render, V, A arguments) {
  auto dict = std::make_shared<Dict>(&render.meter());
  for (const Value& key : render.iterate(arguments[0]))
    dict->set(key, arguments.given(1) ? arguments[1] : Value(None{}));
  return Value(std::move(dict));
}

Value function_namespace(Render& render, V, A arguments) {
  auto space = dict_of(render, arguments);
  space->name_space = true;
  return Value(std::move(space));
}

Value function_range(Render& render, V, A arguments) {
  if (!arguments.given(1)) return make_range(0, arguments.integer(0), 1, render.meter());
  return make_range(arguments.integer(0), arguments.integer(1), arguments.integer(2, 1), render.meter());
}

Value function_raise_exception(Render& render, V, A arguments) {
  throw Fault("the template refuses: " + render.print(arguments[0]).bytes());
}

Value function_strftime_now(Render& render, V, A arguments) {
  const std::string format(arguments.text(0).bytes());
  if (format.empty()) return render.text(MarkedText());
  if (format.size() > 1024) throw Fault("strftime_now: the format has more than 1024 bytes");
  const std::tm now = render.now();
  std::array<char, 16384> buffer;
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  return render.text(MarkedText(std::string(buffer.data(), size)));
}

constexpr Row kFunctions[] = {
    {"dict", "*", function_dict},
    {"dict.fromkeys", "iterable value?", function_fromkeys},
    {"namespace", "*", function_namespace},
    {"raise_exception", "message", function_raise_exception},
    {"range", "start stop? step?", function_range},
    {"strftime_now", "format", function_strftime_now},
};

}  // namespace

std::span<const Row> functions() { return kFunctions; }

}  // namespace sluice::tokenizer::jinja
