#include "tokenizer/chat/calls/marks.h"

#include <algorithm>

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Special tokens begin and end with signs, so that few parts of a mark are looked up.
bool may_bound(char byte) {
  const bool word = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == ' ' ||
                    byte == '_' || byte == '"' || byte == '=';
  return !word;
}

// How long a proper beginning of `mark` the text ends with.
std::size_t begun(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (text.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace

std::string without_tags(std::string_view tagged) {
  std::string text(tagged);
  std::erase(text, kSpecialToken);
  return text;
}

std::string MarkTokens::tagged(std::string_view mark) {
  if (tokenizer_ == nullptr) return std::string(mark);
  std::string result;
  for (std::size_t at = 0; at < mark.size();) {
    std::size_t length = may_bound(mark[at]) ? mark.size() - at : 0;
    for (; length > 0; --length) {
      if (!may_bound(mark[at + length - 1])) continue;
      const std::string_view part = mark.substr(at, length);
      const auto id = tokenizer_->id_of(part);
      if (!id || !tokenizer_->is_special(*id)) continue;
      specials_[*id] = part;
      break;
    }
    if (length > 0) result += kSpecialToken;
    length = std::max<std::size_t>(length, 1);
    result += mark.substr(at, length);
    at += length;
  }
  return result;
}

std::string MarkTokens::tagged(TokenId id, std::string_view text) const {
  if (tokenizer_ == nullptr || !tokenizer_->is_special(id)) return tagged_plain(text);
  const auto special = specials_.find(id);
  const std::string content =
      special != specials_.end() ? special->second : tokenizer_->decode({&id, 1}, ShowSpecial::kYes);
  if (!text.ends_with(content)) return tagged_plain(text);
  std::string result = tagged_plain(text.substr(0, text.size() - content.size()));
  if (special != specials_.end()) (result += kSpecialToken) += content;
  return result;
}

std::string MarkTokens::tagged_plain(std::string_view text) const {
  std::string result;
  for (const char byte : text)
    if (byte == kSpecialToken)
      result += kReplacement;
    else
      result += byte;
  return result;
}

FoundMark find_mark(std::string_view text, std::span<const std::string* const> marks, std::size_t from) {
  FoundMark first{text.size(), nullptr};
  std::size_t held = 0;
  for (const std::string* mark : marks) {
    if (mark->empty()) continue;
    held = std::max(held, begun(text, *mark));
    const std::size_t at = text.find(*mark, from);
    if (at < first.at) first = {at, mark};
  }
  if (first.mark == nullptr) first.at -= held;
  return first;
}

Begins begins_with(std::string_view text, std::string_view mark) {
  if (text.starts_with(mark)) return Begins::kYes;
  return mark.starts_with(text) ? Begins::kPerhaps : Begins::kNo;
}

}  // namespace sluice::tokenizer
