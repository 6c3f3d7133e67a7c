#include "tokenizer/stages/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// Where the run of white space at the end begins.
std::size_t white_space_before(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode_last_utf8(text);
    if (!is_white_space(c.value)) break;
    text.remove_suffix(c.length);
  }
  return text.size();
}

// Length of the run of white space at the beginning.
std::size_t white_space_after(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_valid_utf8(text.substr(at));
    if (!is_white_space(c.value)) break;
    at += c.length;
  }
  return at;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word(decode_last_utf8(text.substr(0, begin)).value)) return false;
  return end == text.size() || !is_word(decode_valid_utf8(text.substr(end)).value);
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  SLUICE_CHECK(!token.content.empty() && token.content.size() <= kMaxContentBytes, token.content);
  if (contents_.add(token.content, token.id) == Vocabulary::Added::kYes) tokens_.push_back(std::move(token));
}

void AddedTokens::prepare(const Normalizer* normalizer) {
  by_id_.clear();
  // Among tokens that are equal once normalised, special ones come first, then the order of the file.
  for (const bool special : {true, false}) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      token.shown = token.content;
      token.blank = white_space_after(token.content) == token.content.size();
      by_id_.emplace_back(token.id, i);
      if (token.normalized) {
        if (normalizer != nullptr) normalizer->normalize(token.shown);
        normalized_.add(token.shown, static_cast<std::uint32_t>(i));
      } else {
        raw_.add(token.content, static_cast<std::uint32_t>(i));
      }
    }
  }
  std::sort(by_id_.begin(), by_id_.end());
}

// The longest match that is blank or lies within the first `own_bytes`, which are not the request's.
std::optional<ByteTrie::Found> AddedTokens::allowed(const ByteTrie& trie, std::string_view rest,
                                                    std::size_t own_bytes) const {
  std::optional<ByteTrie::Found> longest;
  trie.for_each_prefix(rest, [&](const ByteTrie::Found& found) {
    if (found.length <= own_bytes || tokens_[found.number].blank) longest = found;
  });
  return longest;
}

// AddedVocabulary::find_matches of tokenizers, with its corner cases: a match that is refused still hides
// matches that overlap it, and a token may begin inside the white space that the token before it swallowed.
void AddedTokens::split(std::string_view text, Stage stage, std::span<const ByteRange> request,
                        FunctionRef<void(const Part&)> report) const {
  const ByteTrie& trie = stage == Stage::kRaw ? raw_ : normalized_;
  std::size_t done = 0;
  std::size_t space_begin = 0,
              space_end = 0;  // end of the last swallowed run of white space, which is examined only once
  for (std::size_t at = 0; !trie.empty() && at < text.size();) {
    while (!request.empty() && request.front().end <= at) request = request.subspan(1);
    const auto found = request.empty() ? trie.longest_prefix(text.substr(at))
                                       : allowed(trie, text.substr(at),
                                                 request.front().begin > at ? request.front().begin - at : 0);
    if (!found) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + found->length;
    at = end;
    const AddedToken& token = tokens_[found->number];
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip)
      begin = done < begin ? done + white_space_before(text.substr(done, begin - done)) : done;
    if (token.rstrip && end >= space_begin && end <= space_end) {
      end = space_end;
    } else if (token.rstrip) {
      space_begin = end;
      end = space_end = end + white_space_after(text.substr(end));
    }
    if (done < begin) report({done, begin, -1});
    report({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) report({done, text.size(), -1});
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto id = contents_.find(content);
  return id ? find(*id) : nullptr;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair<TokenId, std::size_t>{id, 0});
  return at != by_id_.end() && at->first == id ? &tokens_[at->second] : nullptr;
}

bool AddedTokens::is_special(TokenId id) const {
  const AddedToken* token = find(id);
  return token != nullptr && token->special;
}

TokenId AddedTokens::end_id() const { return contents_.end_id(); }

}  // namespace sluice::tokenizer
