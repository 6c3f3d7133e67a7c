#include "tokenizer/template/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::tokenizer::jinja {
namespace {

using ExpressionKind = Expression::Kind;

// Chains such as a + b + c and a.b.c nest to the left without nesting in the source.
constexpr unsigned kMostHeight = 250;

struct OperatorRow {
  std::string_view text;
  Operator value;
};
constexpr OperatorRow kComparisons[] = {
    {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
    {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual},
};
constexpr OperatorRow kSums[] = {{"+", Operator::kAdd}, {"-", Operator::kSubtract}};
constexpr OperatorRow kProducts[] = {{"*", Operator::kMultiply},
                                     {"/", Operator::kDivide},
                                     {"//", Operator::kFloorDivide},
                                     {"%", Operator::kModulo}};

template <std::size_t N>
const OperatorRow* find_operator(const TokenStream& stream, const OperatorRow (&rows)[N]) {
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [&](const OperatorRow& one) { return stream.sees_operator(one.text); });
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace

ExpressionPtr ExpressionParser::made(ExpressionKind kind, Place place) const {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->place = place;
  return expression;
}

ExpressionPtr ExpressionParser::finished(ExpressionPtr expression) {
  for (const ExpressionPtr& part : expression->parts)
    if (part != nullptr) expression->height = std::max(expression->height, part->height + 1);
  for (const auto& [name, part] : expression->named)
    expression->height = std::max(expression->height, part->height + 1);
  if (expression->height > kMostHeight)
    stream_.fail_at(expression->place, fmt::format("an expression of more than {} levels", kMostHeight));
  return expression;
}

ExpressionPtr ExpressionParser::joined(ExpressionKind kind, Place place, ExpressionPtr left,
                                       ExpressionPtr right) {
  ExpressionPtr both = made(kind, place);
  both->parts.push_back(std::move(left));
  both->parts.push_back(std::move(right));
  return finished(std::move(both));
}

ExpressionPtr ExpressionParser::parse_expression(Conditional conditional) {
  const TokenStream::Level level(stream_);
  ExpressionPtr value = parse_or();
  while (conditional == Conditional::kYes && stream_.sees_word("if")) {
    ExpressionPtr choice = made(ExpressionKind::kIf, stream_.take().place);
    choice->parts.push_back(std::move(value));
    choice->parts.push_back(parse_or());
    choice->parts.push_back(stream_.skip_word("else") ? parse_expression() : nullptr);
    value = finished(std::move(choice));
  }
  return value;
}

bool ExpressionParser::at_tuple_end() const {
  return stream_.sees(TokenKind::kOutputEnd) || stream_.sees(TokenKind::kBlockEnd) ||
         stream_.sees(TokenKind::kEnd) || stream_.sees_operator(")") || stream_.sees_operator("=") ||
         stream_.sees_word("in") || stream_.sees_word("recursive");
}

ExpressionPtr ExpressionParser::parse_tuple(Conditional conditional) {
  const Place place = stream_.current().place;
  if (at_tuple_end()) stream_.fail_unexpected("an expression");
  ExpressionPtr first = parse_expression(conditional);
  if (!stream_.sees_operator(",")) return first;
  ExpressionPtr tuple = made(ExpressionKind::kTuple, place);
  tuple->parts.push_back(std::move(first));
  while (stream_.skip_operator(",")) {
    if (at_tuple_end()) break;
    tuple->parts.push_back(parse_expression(conditional));
  }
  return finished(std::move(tuple));
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (stream_.sees_word("or")) {
    const Place place = stream_.take().place;
    left = joined(ExpressionKind::kOr, place, std::move(left), parse_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (stream_.sees_word("and")) {
    const Place place = stream_.take().place;
    left = joined(ExpressionKind::kAnd, place, std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!stream_.sees_word("not")) return parse_compare();
  const TokenStream::Level level(stream_);
  ExpressionPtr negation = made(ExpressionKind::kNot, stream_.take().place);
  negation->parts.push_back(parse_not());
  return finished(std::move(negation));
}

ExpressionPtr ExpressionParser::parse_compare() {
  ExpressionPtr compare = made(ExpressionKind::kCompare, stream_.current().place);
  compare->parts.push_back(parse_sum());
  for (;;) {
    if (const OperatorRow* row = find_operator(stream_, kComparisons)) {
      stream_.take();
      compare->operators.push_back(row->value);
    } else if (stream_.skip_word("in")) {
      compare->operators.push_back(Operator::kIn);
    } else if (stream_.sees_word("not") && stream_.next().kind == TokenKind::kName &&
               stream_.next().text == "in") {
      stream_.take();
      stream_.take();
      compare->operators.push_back(Operator::kNotIn);
    } else {
      break;
    }
    compare->parts.push_back(parse_sum());
  }
  if (compare->operators.empty()) return std::move(compare->parts[0]);
  return finished(std::move(compare));
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concat();
  while (const OperatorRow* row = find_operator(stream_, kSums)) {
    const Place place = stream_.take().place;
    left = joined(ExpressionKind::kBinary, place, std::move(left), parse_concat());
    left->operators.push_back(row->value);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concat() {
  ExpressionPtr first = parse_product();
  if (!stream_.sees_operator("~")) return first;
  ExpressionPtr concat = made(ExpressionKind::kConcat, first->place);
  concat->parts.push_back(std::move(first));
  while (stream_.skip_operator("~")) concat->parts.push_back(parse_product());
  return finished(std::move(concat));
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  while (const OperatorRow* row = find_operator(stream_, kProducts)) {
    const Place place = stream_.take().place;
    left = joined(ExpressionKind::kBinary, place, std::move(left), parse_power());
    left->operators.push_back(row->value);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary(Filters::kYes);
  while (stream_.sees_operator("**")) {
    const Place place = stream_.take().place;
    left = joined(ExpressionKind::kBinary, place, std::move(left), parse_unary(Filters::kYes));
    left->operators.push_back(Operator::kPower);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(Filters filters) {
  ExpressionPtr value;
  if (stream_.sees_operator("-") || stream_.sees_operator("+")) {
    const TokenStream::Level level(stream_);
    const Token sign = stream_.take();
    value = made(ExpressionKind::kUnary, sign.place);
    value->operators.push_back(sign.text == "-" ? Operator::kNegate : Operator::kPlus);
    value->parts.push_back(parse_unary(Filters::kNo));
    value = finished(std::move(value));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return filters == Filters::kYes ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token& token = stream_.current();
  const Place place = token.place;
  ExpressionPtr constant = made(ExpressionKind::kConstant, place);
  switch (token.kind) {
    case TokenKind::kName: {
      const std::string name = stream_.take().text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        constant->constant = Value(name == "true" || name == "True");
        return constant;
      }
      if (name == "none" || name == "None") {
        constant->constant = Value(None{});
        return constant;
      }
      ExpressionPtr variable = made(ExpressionKind::kName, place);
      variable->name = name;
      variable->name_id = stream_.name_id(name);
      used_.push_back(variable->name_id);
      return variable;
    }
    case TokenKind::kString: {
      std::string text;
      while (stream_.sees(TokenKind::kString)) text += stream_.take().text;
      constant->constant = Value::string(std::move(text));
      return constant;
    }
    case TokenKind::kInteger:
      constant->constant = Value(stream_.take().integer);
      return constant;
    case TokenKind::kReal:
      constant->constant = Value(stream_.take().real);
      return constant;
    default:
      break;
  }
  if (stream_.sees_operator("[")) return parse_list();
  if (stream_.sees_operator("{")) return parse_dict();
  if (stream_.skip_operator("(")) {
    if (stream_.skip_operator(")")) return made(ExpressionKind::kTuple, place);
    ExpressionPtr inner = parse_tuple();
    stream_.expect_operator(")");
    return inner;
  }
  stream_.fail_unexpected("an expression");
}

ExpressionPtr ExpressionParser::parse_list() {
  ExpressionPtr list = made(ExpressionKind::kList, stream_.take().place);
  while (!stream_.sees_operator("]")) {
    if (!list->parts.empty()) stream_.expect_operator(",");
    if (stream_.sees_operator("]")) break;
    list->parts.push_back(parse_expression());
  }
  stream_.expect_operator("]");
  return finished(std::move(list));
}

ExpressionPtr ExpressionParser::parse_dict() {
  ExpressionPtr dict = made(ExpressionKind::kDict, stream_.take().place);
  while (!stream_.sees_operator("}")) {
    if (!dict->parts.empty()) stream_.expect_operator(",");
    if (stream_.sees_operator("}")) break;
    dict->parts.push_back(parse_expression());
    stream_.expect_operator(":");
    dict->parts.push_back(parse_expression());
  }
  stream_.expect_operator("}");
  return finished(std::move(dict));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr subject) {
  for (;;) {
    const Place place = stream_.current().place;
    if (stream_.skip_operator(".")) {
      ExpressionPtr access;
      if (stream_.sees(TokenKind::kInteger)) {
        ExpressionPtr index = made(ExpressionKind::kConstant, stream_.current().place);
        index->constant = Value(stream_.take().integer);
        access = joined(ExpressionKind::kItem, place, std::move(subject), std::move(index));
      } else {
        access = made(ExpressionKind::kAttribute, place);
        access->name = stream_.expect(TokenKind::kName, "the name of an attribute").text;
        access->parts.push_back(std::move(subject));
        access = finished(std::move(access));
      }
      subject = std::move(access);
    } else if (stream_.sees_operator("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (stream_.sees_operator("(")) {
      ExpressionPtr call = made(ExpressionKind::kCall, place);
      call->parts.push_back(std::move(subject));
      parse_arguments(*call);
      subject = finished(std::move(call));
    } else {
      return subject;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr subject) {
  for (;;) {
    if (stream_.sees_operator("|")) {
      stream_.take();
      subject = parse_filter(std::move(subject));
    } else if (stream_.sees_word("is")) {
      subject = parse_test(std::move(subject));
    } else if (stream_.sees_operator("(")) {
      ExpressionPtr call = made(ExpressionKind::kCall, stream_.current().place);
      call->parts.push_back(std::move(subject));
      parse_arguments(*call);
      subject = finished(std::move(call));
    } else {
      return subject;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr subject) {
  do subject = parse_filter(std::move(subject));
  while (stream_.skip_operator("|"));
  return subject;
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = stream_.expect(TokenKind::kName, "a name").text;
  while (stream_.skip_operator(".")) name += "." + stream_.expect(TokenKind::kName, "a name").text;
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr subject) {
  ExpressionPtr filter = made(ExpressionKind::kFilter, stream_.current().place);
  filter->name = parse_dotted_name();
  filter->parts.push_back(std::move(subject));
  if (stream_.sees_operator("(")) parse_arguments(*filter);
  return finished(std::move(filter));
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr subject) {
  const Place place = stream_.take().place;
  const bool negated = stream_.skip_word("not");
  ExpressionPtr test = made(ExpressionKind::kTest, stream_.current().place);
  test->name = parse_dotted_name();
  test->parts.push_back(std::move(subject));
  const bool argument = stream_.sees(TokenKind::kName) || stream_.sees(TokenKind::kString) ||
                        stream_.sees(TokenKind::kInteger) || stream_.sees(TokenKind::kReal) ||
                        stream_.sees_operator("[") || stream_.sees_operator("{");
  if (stream_.sees_operator("(")) {
    parse_arguments(*test);
  } else if (argument && !stream_.sees_word("else") && !stream_.sees_word("or") &&
             !stream_.sees_word("and")) {
    if (stream_.sees_word("is")) stream_.fail("tests cannot follow each other: use `and`");
    const TokenStream::Level level(stream_);
    test->parts.push_back(parse_postfix(parse_primary()));
  }
  test = finished(std::move(test));
  if (!negated) return test;
  ExpressionPtr negation = made(ExpressionKind::kNot, place);
  negation->parts.push_back(std::move(test));
  return finished(std::move(negation));
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr subject) {
  const Place place = stream_.take().place;
  const auto ends = [&] {
    return stream_.sees_operator(":") || stream_.sees_operator("]") || stream_.sees_operator(",");
  };
  ExpressionPtr first;
  if (!stream_.sees_operator(":")) first = parse_expression();
  ExpressionPtr access;
  if (stream_.skip_operator(":")) {
    access = made(ExpressionKind::kSlice, place);
    access->parts.push_back(std::move(subject));
    access->parts.push_back(std::move(first));
    access->parts.push_back(ends() ? nullptr : parse_expression());
    access->parts.push_back(!stream_.skip_operator(":") || ends() ? nullptr : parse_expression());
  } else if (stream_.sees_operator(",")) {
    ExpressionPtr tuple = made(ExpressionKind::kTuple, place);
    tuple->parts.push_back(std::move(first));
    while (stream_.skip_operator(",")) {
      if (stream_.sees_operator("]")) break;
      if (stream_.sees_operator(":")) stream_.fail("slices within a tuple are not supported");
      tuple->parts.push_back(parse_expression());
    }
    access = joined(ExpressionKind::kItem, place, std::move(subject), finished(std::move(tuple)));
  } else {
    access = joined(ExpressionKind::kItem, place, std::move(subject), std::move(first));
  }
  stream_.expect_operator("]");
  return finished(std::move(access));
}

void ExpressionParser::parse_arguments(Expression& call) {
  stream_.expect_operator("(");
  bool first = true;
  while (!stream_.sees_operator(")")) {
    if (!first) stream_.expect_operator(",");
    first = false;
    if (stream_.sees_operator(")")) break;
    if (stream_.sees_operator("*") || stream_.sees_operator("**"))
      stream_.fail("arguments from a list or dictionary (* and **) are not supported");
    if (stream_.sees(TokenKind::kName) && stream_.next().kind == TokenKind::kOperator &&
        stream_.next().text == "=") {
      std::string name = stream_.take().text;
      stream_.take();
      for (const auto& [other, value] : call.named)
        if (other == name) stream_.fail(fmt::format("the argument {} is given twice", name));
      call.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!call.named.empty()) stream_.fail("an argument without a name follows one with a name");
      call.parts.push_back(parse_expression());
    }
  }
  stream_.expect_operator(")");
}

}  // namespace sluice::tokenizer::jinja
