// The grammar of the JSON texts that fit a JSON schema, as far as its keywords are supported
// (docs/serving.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar_builder.h"
#include "engine/grammar/json_parts.h"
#include "engine/grammar/schema_value.h"

namespace sluice::engine {

// Every text of the grammar fits the schema; keys stand in the order of `properties`, further ones
// behind. One object for each schema of a grammar; what it is given must outlive it. Error(kInvalid)
// names the place in the schema: what it cannot be bound to.
class SchemaGrammar {
 public:
  static constexpr std::size_t kMostDepth = 32;  // levels of schemas in schemas

  // `path`: of the schema in the request. `strict`: keywords that a grammar cannot hold are errors, not
  // left out.
  SchemaGrammar(GrammarBuilder& builder, JsonParts& parts, const SchemaValue& root, std::string path,
                bool strict);

  GrammarRule whole() { return rule_of(root_, path_); }
  GrammarRule rule_of(const SchemaValue& schema, const std::string& path);
  // A schema without references and allOf at its top.
  SchemaValue resolved(const SchemaValue& schema, const std::string& path);
  // Keywords that were left out, each once.
  const std::vector<std::string>& left_out() const { return left_out_; }
  void leave_out(const std::string& keyword, const std::string& path);

 private:
  enum Types : unsigned {
    kNull = 1,
    kBoolean = 2,
    kInteger = 4,
    kNumber = 8,
    kString = 16,
    kArray = 32,
    kObject = 64,
    kAll = 127
  };

  struct Property {
    std::string name;
    GrammarRule rule;
    bool required;
  };

  GrammarPart part_of(const SchemaValue& schema, const std::string& path);
  GrammarPart typed(const SchemaValue& schema, const std::string& path);
  GrammarPart alternatives(const SchemaValue& schema, const std::string& keyword, const std::string& path);
  GrammarPart values(const SchemaValue& schema, const std::string& path);
  GrammarPart literal(const SchemaValue& value);
  GrammarPart string_part(const SchemaValue& schema, const std::string& path);
  GrammarPart integer_part(const SchemaValue& schema);
  GrammarPart array_part(const SchemaValue& schema, const std::string& path);
  GrammarPart object_part(const SchemaValue& schema, const std::string& path);
  std::vector<Property> properties_of(const SchemaValue& schema, const SchemaValue& rest,
                                      const std::string& path);
  GrammarPart other_key(const std::vector<std::string>& names);
  GrammarRule reference(const std::string& target, const std::string& path);
  const SchemaValue& target_of(const SchemaValue& reference, const std::string& path) const;
  void check_keywords(const SchemaValue& schema, const std::string& path);
  unsigned types_of(const SchemaValue& schema, const std::string& path) const;
  std::uint32_t count_of(const SchemaValue& schema, std::string_view keyword, std::uint32_t otherwise,
                         const std::string& path) const;
  [[noreturn]] void fail(const std::string& path, std::string_view expected, std::string_view found) const;

  GrammarBuilder& builder_;
  JsonParts& parts_;
  const SchemaValue& root_;
  const std::string path_;
  const bool strict_;
  std::map<std::string, GrammarRule> references_;  // by target
  std::vector<std::string> left_out_;
  std::size_t depth_ = 0, compiled_ = 0;
};

}  // namespace sluice::engine
