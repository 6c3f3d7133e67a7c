#include "engine/grammar/marks_of_text.h"

#include "tokenizer/chat/calls/marks.h"

namespace sluice::engine {

GrammarMark mark_of_text(std::string_view text, const tokenizer::Tokenizer& tokenizer) {
  tokenizer::MarkTokens tokens(&tokenizer);
  const std::string tagged = tokens.tagged(text);
  GrammarMark mark;
  for (std::size_t at = 0; at < tagged.size();) {
    if (tagged[at] != tokenizer::kSpecialToken) {
      mark.push_back({static_cast<std::uint8_t>(tagged[at++]), {}});
      continue;
    }
    ++at;  // the content follows: the longest one that is a special token
    for (std::size_t length = tagged.size() - at; length > 0; --length) {
      const auto id = tokenizer.id_of(tagged.substr(at, length));
      if (!id || !tokenizer.is_special(*id)) continue;
      mark.push_back({0, *id});
      at += length;
      break;
    }
  }
  return mark;
}

}  // namespace sluice::engine
