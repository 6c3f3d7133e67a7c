#include "tokenizer/template/token_stream.h"

#include <fmt/format.h>

namespace sluice::tokenizer::jinja {

bool TokenStream::skip_operator(std::string_view text) {
  if (!sees_operator(text)) return false;
  take();
  return true;
}

bool TokenStream::skip_word(std::string_view word) {
  if (!sees_word(word)) return false;
  take();
  return true;
}

void TokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_unexpected(fmt::format("'{}'", text));
}

void TokenStream::expect_word(std::string_view word) {
  if (!skip_word(word)) fail_unexpected(fmt::format("'{}'", word));
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!sees(kind)) fail_unexpected(what);
  return take();
}

void TokenStream::fail_at(Place place, std::string_view message) const {
  throw template_error(name_, place, message);
}

void TokenStream::fail_unexpected(std::string_view expected) const {
  fail(fmt::format("unexpected {}, expected {}", shown_current(), expected));
}

std::string TokenStream::shown_current() const {
  switch (current().kind) {
    case TokenKind::kEnd:
      return "end of the template";
    case TokenKind::kText:
      return "text";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    default:
      return "'" + current().text + "'";
  }
}

NameId TokenStream::name_id(const std::string& name) {
  const auto [at, added] = ids_.emplace(name, static_cast<NameId>(names_.size()));
  if (added) names_.push_back(name);
  return at->second;
}

TokenStream::Level::Level(TokenStream& stream) : stream_(stream) {
  if (stream.level_ >= stream.limits_.nesting)
    stream.fail(fmt::format("blocks and expressions nest more than {} deep", stream.limits_.nesting));
  ++stream.level_;
}

}  // namespace sluice::tokenizer::jinja
