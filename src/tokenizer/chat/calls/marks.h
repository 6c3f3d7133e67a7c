// The marks of a format within the text of an answer.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

inline constexpr std::string_view kAnswerBlanks = " \t\r\n";
// Stands before the text of a special token, which is so told from ordinary tokens of that text. It is no
// byte of UTF-8.
inline constexpr char kSpecialToken = '\xff';

std::string without_tags(std::string_view tagged);

// Thread-compatible.
class MarkTokens {
 public:
  explicit MarkTokens(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}
  // A mark as it stands in tagged text.
  std::string tagged(std::string_view mark);
  // A token's text: tagged if it is a special token of a mark, without it if it is another special token.
  std::string tagged(TokenId id, std::string_view text) const;
  std::string tagged_plain(std::string_view text) const;
  bool has_special() const { return !specials_.empty(); }  // in the marks so far

 private:
  const Tokenizer* tokenizer_;
  std::map<TokenId, std::string> specials_;  // special tokens of marks
};

// A mark in a text, the first one. Without one: where a mark may begin, or the text's end.
struct FoundMark {
  std::size_t at = 0;
  const std::string* mark = nullptr;
};
// Empty marks are in no text. The search begins at `from`.
FoundMark find_mark(std::string_view text, std::span<const std::string* const> marks, std::size_t from = 0);

// Whether a text begins with a mark, or may come to.
enum class Begins { kNo, kPerhaps, kYes };
Begins begins_with(std::string_view text, std::string_view mark);

}  // namespace sluice::tokenizer
