#include "tokenizer/template/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "tokenizer/template/expression_parser.h"
#include "tokenizer/template/token_stream.h"

namespace sluice::tokenizer::jinja {
namespace {

using StatementKind = Statement::Kind;
using Words = std::initializer_list<std::string_view>;

// Tags that other programs know: each is refused by name.
constexpr std::array<std::string_view, 9> kRefusedTags = {
    "include", "import", "from", "extends", "block", "call", "do", "autoescape", "trans"};

class TemplateParser {
 public:
  TemplateParser(TokenStream& stream) : stream_(stream), expressions_(stream) {}

  Syntax parse() {
    Syntax syntax;
    syntax.body = parse_block({});
    syntax.names = stream_.take_names();
    return syntax;
  }

 private:
  // Statements up to a tag with one of these words, which the stream then stands at, behind its "{%".
  // Without words: up to the end of the template.
  Block parse_block(Words ends) {
    const TokenStream::Level level(stream_);
    Block block;
    for (;;) {
      const Place place = stream_.current().place;
      if (stream_.sees(TokenKind::kEnd)) {
        if (ends.size() == 0) return block;
        stream_.fail(fmt::format("the template ends within a block: expected '{}'", *ends.begin()));
      }
      if (stream_.sees(TokenKind::kText)) {
        Statement text = made(StatementKind::kText, place);
        text.value = std::make_unique<Expression>();
        text.value->constant = Value::string(stream_.take().text);
        block.push_back(std::move(text));
      } else if (stream_.sees(TokenKind::kOutputBegin)) {
        stream_.take();
        Statement output = made(StatementKind::kOutput, place);
        output.value = expressions_.parse_tuple();
        stream_.expect(TokenKind::kOutputEnd, "'}}'");
        block.push_back(std::move(output));
      } else {
        stream_.expect(TokenKind::kBlockBegin, "a tag");
        const bool done = std::any_of(ends.begin(), ends.end(),
                                      [&](std::string_view end) { return stream_.sees_word(end); });
        if (done) return block;
        block.push_back(parse_tag(place));
      }
    }
  }

  static Statement made(StatementKind kind, Place place) {
    Statement statement;
    statement.kind = kind;
    statement.place = place;
    return statement;
  }
  void end_tag() { stream_.expect(TokenKind::kBlockEnd, "'%}'"); }

  Statement parse_tag(Place place) {
    if (!stream_.sees(TokenKind::kName)) stream_.fail_unexpected("the name of a tag");
    const Place name_place = stream_.current().place;
    const std::string name = stream_.take().text;
    if (name == "if") return parse_if(place);
    if (name == "for") return parse_for(place);
    if (name == "set") return parse_set(place);
    if (name == "macro") return parse_macro(place);
    if (name == "filter") return parse_filter_block(place);
    if (name == "with") return parse_with(place);
    if (name == "generation") return parse_generation(place);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) stream_.fail_at(name_place, fmt::format("'{}' stands outside a loop", name));
      end_tag();
      return made(name == "break" ? StatementKind::kBreak : StatementKind::kContinue, place);
    }
    if (std::find(kRefusedTags.begin(), kRefusedTags.end(), name) != kRefusedTags.end())
      stream_.fail_at(name_place, fmt::format("the tag '{}' is not supported in chat templates", name));
    stream_.fail_at(name_place, fmt::format("unknown tag '{}'", name));
  }

  Statement parse_if(Place place) {
    Statement statement = made(StatementKind::kIf, place);
    for (;;) {
      Branch branch;
      branch.condition = expressions_.parse_tuple(ExpressionParser::Conditional::kNo);
      end_tag();
      branch.body = parse_block({"endif", "else", "elif"});
      statement.branches.push_back(std::move(branch));
      const std::string word = stream_.take().text;
      if (word == "elif") continue;
      if (word == "else") {
        end_tag();
        statement.branches.push_back({nullptr, parse_block({"endif"})});
        stream_.take();
      }
      end_tag();
      return statement;
    }
  }

  Statement parse_for(Place place) {
    Statement statement = made(StatementKind::kFor, place);
    statement.target = parse_target(Attributes::kNo);
    stream_.expect_word("in");
    statement.value = expressions_.parse_tuple(ExpressionParser::Conditional::kNo);
    if (stream_.skip_word("if")) statement.condition = expressions_.parse_expression();
    if (stream_.sees_word("recursive")) stream_.fail("recursive loops are not supported");
    end_tag();
    ++loops_;
    statement.body = parse_block({"endfor", "else"});
    --loops_;
    if (stream_.take().text == "else") {
      end_tag();
      statement.otherwise = parse_block({"endfor"});
      stream_.take();
    }
    end_tag();
    return statement;
  }

  enum class Attributes { kNo, kYes };  // whether a namespace's attribute may be assigned to

  Target parse_target(Attributes attributes) {
    const Place place = stream_.current().place;
    Target first = parse_one_target(attributes);
    if (!stream_.sees_operator(",")) return first;
    Target tuple;
    tuple.kind = Target::Kind::kTuple;
    tuple.place = place;
    tuple.parts.push_back(std::move(first));
    while (stream_.skip_operator(",")) {
      if (stream_.sees_operator("=") || stream_.sees_word("in") || stream_.sees_operator(")")) break;
      tuple.parts.push_back(parse_one_target(attributes));
    }
    return tuple;
  }

  Target parse_one_target(Attributes attributes) {
    const TokenStream::Level level(stream_);
    Target target;
    target.place = stream_.current().place;
    if (stream_.skip_operator("(")) {
      target = parse_target(attributes);
      stream_.expect_operator(")");
      return target;
    }
    const std::string name = stream_.expect(TokenKind::kName, "a name to assign to").text;
    static constexpr std::array<std::string_view, 6> kConstants = {"true",  "True", "false",
                                                                   "False", "none", "None"};
    if (std::find(kConstants.begin(), kConstants.end(), name) != kConstants.end())
      stream_.fail_at(target.place, fmt::format("'{}' cannot be assigned to", name));
    target.name_id = stream_.name_id(name);
    if (attributes == Attributes::kYes && stream_.skip_operator(".")) {
      target.kind = Target::Kind::kAttribute;
      target.attribute = stream_.expect(TokenKind::kName, "the name of an attribute").text;
    }
    return target;
  }

  Statement parse_set(Place place) {
    Statement statement = made(StatementKind::kSet, place);
    statement.target = parse_target(Attributes::kYes);
    if (stream_.skip_operator("=")) {
      statement.value = expressions_.parse_tuple();
      end_tag();
      return statement;
    }
    statement.kind = StatementKind::kSetBlock;
    if (stream_.skip_operator("|")) statement.value = expressions_.parse_filters(nullptr);
    end_tag();
    statement.body = parse_block({"endset"});
    stream_.take();
    end_tag();
    return statement;
  }

  Statement parse_macro(Place place) {
    Statement statement = made(StatementKind::kMacro, place);
    statement.name = stream_.expect(TokenKind::kName, "the name of a macro").text;
    statement.name_id = stream_.name_id(statement.name);
    stream_.expect_operator("(");
    bool first = true;
    while (!stream_.sees_operator(")")) {
      if (!first) stream_.expect_operator(",");
      first = false;
      if (stream_.sees_operator(")")) break;
      Parameter parameter;
      parameter.name_id = stream_.name_id(stream_.expect(TokenKind::kName, "the name of a parameter").text);
      if (stream_.skip_operator("=")) {
        parameter.fallback = expressions_.parse_expression();
      } else if (!statement.parameters.empty() && statement.parameters.back().fallback != nullptr) {
        stream_.fail("a parameter without a default follows one with a default");
      }
      statement.parameters.push_back(std::move(parameter));
    }
    stream_.expect_operator(")");
    end_tag();
    std::vector<NameId> outer = expressions_.take_used_names();
    const std::size_t loops = std::exchange(loops_, 0);
    statement.body = parse_block({"endmacro"});
    loops_ = loops;
    stream_.take();
    end_tag();
    const std::vector<NameId> used = expressions_.take_used_names();
    const auto uses = [&](const char* name) {
      return std::find(used.begin(), used.end(), stream_.name_id(name)) != used.end();
    };
    statement.takes_varargs = uses("varargs");
    statement.takes_kwargs = uses("kwargs");
    outer.insert(outer.end(), used.begin(), used.end());
    expressions_.used_names() = std::move(outer);
    return statement;
  }

  Statement parse_filter_block(Place place) {
    Statement statement = made(StatementKind::kFilterBlock, place);
    statement.value = expressions_.parse_filters(nullptr);
    end_tag();
    statement.body = parse_block({"endfilter"});
    stream_.take();
    end_tag();
    return statement;
  }

  Statement parse_with(Place place) {
    Statement statement = made(StatementKind::kScope, place);
    while (!stream_.sees(TokenKind::kBlockEnd)) {
      if (!statement.with.empty()) stream_.expect_operator(",");
      Target target = parse_one_target(Attributes::kNo);
      stream_.expect_operator("=");
      statement.with.emplace_back(std::move(target), expressions_.parse_expression());
    }
    end_tag();
    statement.body = parse_block({"endwith"});
    stream_.take();
    end_tag();
    return statement;
  }

  Statement parse_generation(Place place) {
    Statement statement = made(StatementKind::kScope, place);
    end_tag();
    const std::size_t loops = std::exchange(loops_, 0);
    statement.body = parse_block({"endgeneration"});
    loops_ = loops;
    stream_.take();
    end_tag();
    return statement;
  }

  TokenStream& stream_;
  ExpressionParser expressions_;
  std::size_t loops_ = 0;  // that `break` could leave
};

}  // namespace

Syntax parse_template(std::string_view source, std::string_view name, const TemplateLimits& limits) {
  if (source.size() > limits.source_bytes)
    throw Error(ErrorKind::kInvalid, "a chat template is too long")
        .in(name)
        .expected(fmt::format("at most {} bytes", limits.source_bytes))
        .found(fmt::format("{}", source.size()));
  TokenStream stream(cut_template(source, name), name, limits);
  return TemplateParser(stream).parse();
}

}  // namespace sluice::tokenizer::jinja
