#include "serve/wire/template_value.h"

#include <memory>
#include <utility>
#include <vector>

namespace sluice::serve {

namespace jinja = tokenizer::jinja;

jinja::Value template_value(const BodyValue& value) {
  if (value.is_null()) return jinja::Value(jinja::None{});
  if (value.is_boolean()) return jinja::Value(value.boolean());
  if (value.is_integer()) return jinja::Value(value.integer());
  if (value.is_number()) return jinja::Value(value.number());
  if (value.is_string()) return jinja::Value::string(value.string(), tokenizer::Origin::kRequest);
  if (value.is_array()) {
    std::vector<jinja::Value> items;
    for (const BodyValue& element : value.array()) items.push_back(template_value(element));
    return jinja::Value(std::make_shared<jinja::List>(nullptr, jinja::ListKind::kList, std::move(items),
                                                      jinja::Frozen::kYes));
  }
  const auto dict = std::make_shared<jinja::Dict>(nullptr, jinja::Frozen::kYes);
  for (const auto& [key, member] : value.object())
    dict->set(jinja::Value::string(key, tokenizer::Origin::kRequest), template_value(member));
  return jinja::Value(dict);
}

}  // namespace sluice::serve
