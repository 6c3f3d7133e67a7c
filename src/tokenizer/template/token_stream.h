// The tokens of a template as its parsers take them, one after the other.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/template/lexer.h"
#include "tokenizer/template/limits.h"
#include "tokenizer/template/syntax.h"

namespace sluice::tokenizer::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view name, const TemplateLimits& limits)
      : tokens_(std::move(tokens)), name_(name), limits_(limits) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool sees(TokenKind kind) const { return current().kind == kind; }
  bool sees_operator(std::string_view text) const {
    return sees(TokenKind::kOperator) && current().text == text;
  }
  bool sees_word(std::string_view word) const { return sees(TokenKind::kName) && current().text == word; }
  bool skip_operator(std::string_view text);
  bool skip_word(std::string_view word);
  void expect_operator(std::string_view text);
  void expect_word(std::string_view word);
  Token expect(TokenKind kind, std::string_view what);

  // Errors at the current token, or at another place.
  [[noreturn]] void fail(std::string_view message) const { fail_at(current().place, message); }
  [[noreturn]] void fail_at(Place place, std::string_view message) const;
  [[noreturn]] void fail_unexpected(std::string_view expected) const;
  std::string shown_current() const;

  NameId name_id(const std::string& name);
  std::vector<std::string> take_names() { return std::move(names_); }

  // While it lives, the source nests one level deeper.
  class Level {
   public:
    explicit Level(TokenStream& stream);
    ~Level() { --stream_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::string_view name_;
  const TemplateLimits& limits_;
  std::size_t at_ = 0, level_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, NameId, std::less<>> ids_;
};

}  // namespace sluice::tokenizer::jinja
