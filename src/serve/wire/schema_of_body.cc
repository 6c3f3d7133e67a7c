#include "serve/wire/schema_of_body.h"

#include "serve/wire/api_error.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostSchemaBytes = std::size_t{64} << 10;

}  // namespace

engine::SchemaValue schema_value(const BodyValue& value) {
  using engine::SchemaValue;
  if (value.is_boolean()) return SchemaValue::of(value.boolean());
  if (value.is_integer()) return SchemaValue::of_integer(value.integer());
  if (value.is_string()) return SchemaValue::of_text(value.string());
  SchemaValue result;
  if (value.is_number()) {
    result.kind = SchemaValue::Kind::kReal;
    result.real = value.number();
  } else if (value.is_array()) {
    result.kind = SchemaValue::Kind::kArray;
    for (const BodyValue& element : value.array()) result.elements.push_back(schema_value(element));
  } else if (value.is_object()) {
    result.kind = SchemaValue::Kind::kObject;
    for (const auto& [key, member] : value.object()) result.members.emplace_back(key, schema_value(member));
  }
  return result;
}

engine::SchemaValue schema_of_body(const BodyValue& value, const std::string& path) {
  const std::size_t bytes = body_text(value).size();
  if (bytes > kMostSchemaBytes)
    throw ApiError(400, "invalid_json_schema",
                   "'" + path + "' must be a schema of at most 65536 bytes, found " + std::to_string(bytes))
        .about(path);
  return schema_value(value);
}

}  // namespace sluice::serve
