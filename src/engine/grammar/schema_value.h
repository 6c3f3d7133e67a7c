// A JSON value of a schema. Unlike base/json it keeps the order of members, in which answers are written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::engine {

struct SchemaValue {
  enum class Kind : std::uint8_t { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };
  using Member = std::pair<std::string, SchemaValue>;

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;  // a string's text
  std::vector<SchemaValue> elements;
  std::vector<Member> members;

  static SchemaValue of(bool value) {
    SchemaValue result;
    result.kind = Kind::kBoolean;
    result.boolean = value;
    return result;
  }
  static SchemaValue of_integer(std::int64_t value) {
    SchemaValue result;
    result.kind = Kind::kInteger;
    result.integer = value;
    return result;
  }
  static SchemaValue of_text(std::string value) {
    SchemaValue result;
    result.kind = Kind::kString;
    result.text = std::move(value);
    return result;
  }
  static SchemaValue array(std::vector<SchemaValue> values = {}) {
    SchemaValue result;
    result.kind = Kind::kArray;
    result.elements = std::move(values);
    return result;
  }
  static SchemaValue object(std::vector<Member> values = {}) {
    SchemaValue result;
    result.kind = Kind::kObject;
    result.members = std::move(values);
    return result;
  }

  bool is(Kind other) const { return kind == other; }
  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  // The member of an object; null if it is absent, or this is no object.
  const SchemaValue* find(std::string_view key) const {
    const auto member = std::ranges::find(members, key, &Member::first);
    return member == members.end() ? nullptr : &member->second;
  }
  void set(std::string_view key, SchemaValue value) {
    const auto member = std::ranges::find(members, key, &Member::first);
    if (member == members.end())
      members.emplace_back(std::string(key), std::move(value));
    else
      member->second = std::move(value);
  }
};

}  // namespace sluice::engine
