// Reads the expressions of a template.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/template/syntax.h"
#include "tokenizer/template/token_stream.h"

namespace sluice::tokenizer::jinja {

// Thread-compatible; the stream must outlive it. Errors name the place.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  enum class Conditional { kNo, kYes };  // whether "a if b else c" may stand here
  ExpressionPtr parse_expression(Conditional conditional = Conditional::kYes);
  // One expression, or several with commas between them, which are a tuple.
  ExpressionPtr parse_tuple(Conditional conditional = Conditional::kYes);
  // "name(arguments) | name …", applied to `subject`, which is null for a block.
  ExpressionPtr parse_filters(ExpressionPtr subject);

  // The names that the expressions have used since the last call, as it is needed for macros.
  std::vector<NameId> take_used_names() { return std::exchange(used_, {}); }
  std::vector<NameId>& used_names() { return used_; }

 private:
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  enum class Filters { kNo, kYes };
  ExpressionPtr parse_unary(Filters filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr subject);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr subject);
  ExpressionPtr parse_filter(ExpressionPtr subject);
  ExpressionPtr parse_test(ExpressionPtr subject);
  ExpressionPtr parse_subscript(ExpressionPtr subject);
  void parse_arguments(Expression& call);
  std::string parse_dotted_name();
  bool at_tuple_end() const;
  ExpressionPtr made(Expression::Kind kind, Place place) const;
  ExpressionPtr joined(Expression::Kind kind, Place place, ExpressionPtr left, ExpressionPtr right);
  // Checks the height once all parts are there.
  ExpressionPtr finished(ExpressionPtr expression);

  TokenStream& stream_;
  std::vector<NameId> used_;
};

}  // namespace sluice::tokenizer::jinja
