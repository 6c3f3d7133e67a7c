#include "engine/grammar/call_grammar.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "engine/grammar/code_points.h"
#include "engine/grammar/marks_of_text.h"

namespace sluice::engine {
namespace {

using tokenizer::CallBody;
using tokenizer::CallIds;
using Kind = SchemaValue::Kind;

std::string_view type_of(const SchemaValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
    default:
      return "number";
  }
}

// The types that a reader of parameters finds in a schema (tokenizer/chat/calls/parameter_value.cc).
void collect_types(const SchemaValue& schema, int level, std::set<std::string>& types) {
  if (level > 8) return;
  if (const SchemaValue* type = schema.find("type")) {
    if (type->is(Kind::kString)) types.insert(type->text);
    for (const SchemaValue& one : type->elements) types.insert(one.text);
  } else if (const SchemaValue* list = schema.find("enum")) {
    for (const SchemaValue& one : list->elements) types.emplace(type_of(one));
  } else if (const SchemaValue* only = schema.find("const")) {
    types.emplace(type_of(*only));
  }
  for (const char* several : {"anyOf", "oneOf"})
    if (const SchemaValue* all = schema.find(several))
      for (const SchemaValue& one : all->elements) collect_types(one, level + 1, types);
}

bool may_be_raw(const SchemaValue& value) {
  return !value.is(Kind::kArray) && !value.is(Kind::kObject) && !value.is(Kind::kReal);
}

std::string raw_text(const SchemaValue& value) {
  if (value.is(Kind::kString)) return value.text;
  if (value.is(Kind::kBoolean)) return value.boolean ? "true" : "false";
  return value.is(Kind::kInteger) ? std::to_string(value.integer) : "null";
}

}  // namespace

GrammarPart CallGrammar::mark(std::string_view text) { return builder_.mark(mark_of_text(text, tokenizer_)); }

void CallGrammar::prepare(CallableTool& tool) {
  if (family_ == nullptr) throw Error(ErrorKind::kUnsupported, "calls of this model are not known");
  if (family_->body == CallBody::kParameters) {
    tool.body = parameters(tool);
    return;
  }
  // Arguments are an object whatever the schema says.
  SchemaValue object = tool.arguments->schema;
  if (object.is(Kind::kObject) && object.find("type") == nullptr && object.find("$ref") == nullptr &&
      object.find("allOf") == nullptr && object.find("anyOf") == nullptr && object.find("oneOf") == nullptr)
    object.set("type", SchemaValue::of_text("object"));
  const GrammarRule rule = tool.schema->rule_of(object, tool.arguments->path);
  tool.body = builder_.call(rule);
}

GrammarPart CallGrammar::call_of(const CallableTool& tool) {
  std::string name = tool.name;
  switch (family_->body) {
    case CallBody::kObject:
      return builder_.in_order({builder_.text(json_string(name)), parts_.between(','),
                                builder_.text("\"arguments\""), parts_.between(':'), tool.body,
                                parts_.closing('}')});
    case CallBody::kArguments: {
      GrammarPart written = builder_.text(name);
      if (family_->ids == CallIds::kCounted)
        written = builder_.in_order({builder_.text("functions." + name + ":"), builder_.bytes('0', '9'),
                                     builder_.perhaps(builder_.bytes('0', '9'))});
      return builder_.in_order({written, mark(family_->name_end), space(), mark(family_->json_begin), space(),
                                tool.body, space(), mark(family_->json_end), space()});
    }
    case CallBody::kParameters:
      return builder_.in_order({builder_.text(name), mark(family_->name_end), space(), tool.body});
    case CallBody::kChannels:
      return builder_.in_order({builder_.text(name + " "), mark("<|constrain|>"), builder_.text("json"),
                                mark("<|message|>"), tool.body});
  }
  return builder_.never();
}

GrammarPart CallGrammar::any_call(const std::vector<CallableTool>& tools) {
  std::vector<GrammarPart> all;
  for (const CallableTool& tool : tools) all.push_back(call_of(tool));
  GrammarPart before = builder_.nothing();
  if (family_->body == CallBody::kObject)
    before = builder_.in_order({parts_.opening('{'), builder_.text("\"name\""), parts_.between(':')});
  if (!family_->name_begin.empty()) before = mark(family_->name_begin);
  return builder_.in_order({before, builder_.one_of(all), mark(family_->call_end)});
}

GrammarPart CallGrammar::raw_value(const CallableTool& tool, const SchemaValue& schema,
                                   const std::string& path) {
  const std::string end = (family_->lines ? "\n" : "") + std::string(family_->value_end);
  const SchemaValue* list = schema.find("enum");
  const SchemaValue* only = schema.find("const");
  std::vector<std::string> texts;
  bool all_raw = true;
  for (const SchemaValue& value : only != nullptr   ? std::vector{*only}
                                  : list != nullptr ? list->elements
                                                    : std::vector<SchemaValue>{}) {
    all_raw = all_raw && may_be_raw(value);
    texts.push_back(raw_text(value));
  }
  if (!texts.empty() && all_raw) return builder_.in_order({builder_.one_of_texts(texts), mark(end)});
  for (const char* keyword : {"enum", "const", "pattern", "minLength", "maxLength"})
    if (schema.find(keyword) != nullptr) tool.schema->leave_out(keyword, path);
  return builder_.text_until(mark_of_text(end, tokenizer_), false);
}

GrammarPart CallGrammar::parameter(const CallableTool& tool, const std::string& name,
                                   const SchemaValue& schema, const std::string& path) {
  std::set<std::string> types;
  collect_types(schema, 0, types);
  const bool raw = types.contains("string");
  const bool attributes = family_->value_begin == ">" && family_->key_end == "\"";  // string="true" tells it
  std::vector<GrammarPart> parts = {mark(family_->key_begin), builder_.text(name), mark(family_->key_end)};
  if (attributes) parts.push_back(builder_.text(raw ? " string=\"true\"" : " string=\"false\""));
  if (!family_->value_begin.empty() && !attributes) parts.push_back(space());
  parts.push_back(mark(family_->value_begin));
  if (family_->lines) parts.push_back(builder_.text("\n"));
  if (raw) {
    parts.push_back(raw_value(tool, schema, path));
  } else {
    parts.push_back(builder_.call(tool.schema->rule_of(schema, path)));
    if (family_->lines) parts.push_back(builder_.text("\n"));
    parts.push_back(mark(family_->value_end));
  }
  parts.push_back(space());
  return builder_.in_order(parts);
}

// In the order of `properties`; others may not be written, since their types are not known.
GrammarPart CallGrammar::parameters(const CallableTool& tool) {
  const std::string& path = tool.arguments->path;
  const SchemaValue schema = tool.schema->resolved(tool.arguments->schema, path);
  const SchemaValue* const properties = schema.find("properties");
  const SchemaValue* const required = schema.find("required");
  if (schema.find("anyOf") != nullptr || schema.find("oneOf") != nullptr)
    throw Error(ErrorKind::kInvalid, "arguments that calls of this model cannot be bound to")
        .in(path)
        .expected("an object with properties")
        .found("alternatives");
  GrammarPart all = builder_.nothing();
  if (properties == nullptr) return all;
  for (const auto& [name, property] : properties->members) {
    const GrammarPart one = parameter(tool, name, property, path + ".properties." + name);
    const std::string& own = name;
    const bool needed = required != nullptr && std::ranges::any_of(required->elements, [&](const auto& each) {
                          return each.text == own;
                        });
    all = builder_.in_order({all, needed ? one : builder_.perhaps(one)});
  }
  return all;
}

GrammarPart CallGrammar::block(const std::vector<CallableTool>& tools, bool only_one, bool opened) {
  if (family_->body == CallBody::kChannels)
    return builder_.in_order(
        {mark("<|channel|>"), builder_.text("commentary to=functions."), any_call(tools)});
  const bool has_section = !family_->section_begin.empty();
  const auto call = [&](bool begun) {
    return builder_.in_order({begun ? builder_.nothing() : mark(family_->call_begin), any_call(tools)});
  };
  if (!has_section) return call(opened);
  // Several calls share a section if something tells them apart there.
  const bool several = !only_one && (!family_->call_begin.empty() || !family_->separator.empty());
  const GrammarRule one = builder_.rule_of(call(false));
  GrammarPart inner = builder_.call(one);
  if (several)
    inner = builder_.in_order({inner, builder_.repeated(builder_.in_order({space(), mark(family_->separator),
                                                                           space(), builder_.call(one)}))});
  return builder_.in_order({opened ? builder_.nothing() : mark(family_->section_begin), space(),
                            mark(family_->list_begin), space(), inner, space(), mark(family_->list_end),
                            space(), mark(family_->section_end)});
}

GrammarPart CallGrammar::calls(const std::vector<CallableTool>& tools, bool only_one) {
  const bool in_section =
      !family_->section_begin.empty() && (!family_->call_begin.empty() || !family_->separator.empty());
  if (only_one || in_section || family_->body == CallBody::kChannels) return block(tools, only_one, false);
  const GrammarRule one = builder_.rule_of(block(tools, true, false));
  return builder_.in_order(
      {builder_.call(one), builder_.repeated(builder_.in_order({space(), builder_.call(one)}))});
}

GrammarPart CallGrammar::free_calls(const std::vector<CallableTool>& tools, bool only_one) {
  const std::string_view opening =
      family_->section_begin.empty() ? family_->call_begin : family_->section_begin;
  const GrammarMark begins = mark_of_text(opening, tokenizer_);
  const GrammarRule last = builder_.rule_of(builder_.text_without(begins, true));
  const GrammarPart with_call =
      builder_.in_order({builder_.text_until(begins, true), block(tools, only_one, true)});
  if (only_one) return builder_.one_of({builder_.call(last), with_call});
  return builder_.in_order({builder_.repeated(with_call), builder_.call(last)});
}

}  // namespace sluice::engine
