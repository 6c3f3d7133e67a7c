#include "tokenizer/export/gguf_token_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

#include "tokenizer/export/gguf_cut.h"
#include "tokenizer/gguf/gguf_tokens.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr float kScoreOfPadding = -1000;  // as llama.cpp's converter has it

// Whether normalising a text (NFC) makes and breaks no occurrence of `content`: no character of it comes
// out of another one, and none joins with a mark behind it.
bool outlasts_nfc(std::string_view content) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const auto joins = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '<' || c == '=' || c == '>';
  };
  return std::ranges::all_of(content, ascii) && content.find_first_of("K;`") == content.npos &&
         !joins(content.back());
}

// Files know one kind of added tokens, found in the text as it is: tokens that are found in normalised text
// must not lie across those that are found before it is normalised.
void check_order(const std::vector<AddedToken>& added, const std::string& place) {
  std::set<std::string_view> raw;
  std::unordered_set<std::string_view> begins;  // how raw tokens begin
  for (const AddedToken& token : added) {
    if (token.normalized) continue;
    raw.insert(token.content);
    for (std::size_t length = 1; length <= token.content.size(); ++length)
      begins.insert(std::string_view(token.content).substr(0, length));
  }
  if (raw.empty()) return;
  for (const AddedToken& token : added) {
    if (!token.normalized) continue;
    const std::string_view content = token.content;
    for (std::size_t at = 0; at < content.size(); ++at) {
      const std::string_view rest = content.substr(at);
      bool within = at > 0 && begins.contains(rest);
      for (std::size_t length = 1; length <= rest.size() && begins.contains(rest.substr(0, length)); ++length)
        within = within || raw.contains(rest.substr(0, length));
      if (within)
        refuse_for_gguf("no GGUF file can say in which order added tokens are found",
                        place + ": added_tokens", "tokens that do not overlap, or are all normalized or not",
                        printable(content));
    }
  }
}

void check_added(const std::vector<AddedToken>& added, bool nfc, const std::string& place) {
  for (const AddedToken& token : added) {
    const std::string own = fmt::format("{}: added token {}", place, printable(token.content));
    if (token.single_word || token.lstrip || token.rstrip)
      refuse_for_gguf("no GGUF file can say what an added token takes of the text beside it", own,
                      "single_word, lstrip and rstrip false", "true");
    if (nfc && token.normalized && !outlasts_nfc(token.content))
      refuse_for_gguf("no GGUF file can say that an added token is found in normalised text", own,
                      "normalized false", "true");
  }
  check_order(added, place);
}

class Rows {
 public:
  Rows(TokenId rows, const std::string& place) : place_(place) {
    rows_.contents.resize(static_cast<std::size_t>(rows));
    rows_.types.resize(static_cast<std::size_t>(rows), static_cast<int>(GgufTokenType::kUnused));
  }

  void put(TokenId id, std::string_view content, GgufTokenType type) {
    if (content.empty()) return;  // text never gives such a token, and it gives no text
    if (type == GgufTokenType::kNormal && ends_an_answer(content))
      refuse_for_gguf("readers of GGUF files take a token that is not special for the end of an answer",
                      fmt::format("{}: token {}", place_, id), "a special token", printable(content));
    rows_.contents[static_cast<std::size_t>(id)] = content;
    rows_.types[static_cast<std::size_t>(id)] = static_cast<int>(type);
  }
  void put_added(const AddedToken& token) {
    put(token.id, token.content, token.special ? GgufTokenType::kControl : GgufTokenType::kUserDefined);
  }

  GgufTokenRows take() {
    const std::unordered_set<std::string_view> taken(rows_.contents.begin(), rows_.contents.end());
    std::vector<std::pair<std::size_t, std::string>> padding;
    for (std::size_t i = 0; i < rows_.contents.size(); ++i) {
      if (!rows_.contents[i].empty()) continue;
      std::string name = fmt::format("[PAD{}]", i);
      while (taken.contains(name)) name = '[' + name + ']';
      padding.emplace_back(i, std::move(name));
    }
    for (auto& [row, name] : padding) rows_.contents[row] = std::move(name);
    return std::move(rows_);
  }

 private:
  GgufTokenRows rows_;
  const std::string& place_;
};

}  // namespace

GgufTokenRows gguf_rows_of_bpe(const TokenizerContents& contents, TokenId rows, bool nfc,
                               const std::string& place) {
  check_added(contents.added, nfc, place);
  std::unordered_set<TokenId> added;
  for (const AddedToken& token : contents.added) added.insert(token.id);
  Rows all(rows, place);
  const Vocabulary& vocabulary = contents.vocabulary;
  for (TokenId id = 0; id < vocabulary.end_id(); ++id)
    if (const auto content = vocabulary.content(id); content && !added.contains(id))
      all.put(id, *content, GgufTokenType::kNormal);
  for (const AddedToken& token : contents.added) all.put_added(token);
  return all.take();
}

GgufTokenRows gguf_rows_of_pieces(const TokenizerContents& contents, TokenId rows, const std::string& place) {
  check_added(contents.added, false, place);
  const SentencePieceModel& pieces = contents.pieces;
  std::unordered_set<TokenId> added;
  for (const AddedToken& token : contents.added) {
    if (!token.special && token.content.find(kWordBegin) != std::string::npos)
      refuse_for_gguf("readers of GGUF files take U+2581 in an added token for a blank",
                      fmt::format("{}: token {}", place, token.id), "an added token without it",
                      printable(token.content));
    added.insert(token.id);
  }
  Rows all(rows, place);
  for (TokenId id = 0; id < pieces.size(); ++id) {
    const PieceType type = pieces.types[static_cast<std::size_t>(id)];
    if (added.contains(id) && type != PieceType::kUnknown) continue;
    if (type == PieceType::kUserDefined)
      refuse_for_gguf("no GGUF file can say that a piece is found in normalised text",
                      fmt::format("{}: piece {}", place, id), "no user-defined piece",
                      printable(pieces.content(id)));
    all.put(id, pieces.content(id), static_cast<GgufTokenType>(type));
  }
  for (const AddedToken& token : contents.added)
    if (token.id >= pieces.size() || pieces.types[static_cast<std::size_t>(token.id)] != PieceType::kUnknown)
      all.put_added(token);
  GgufTokenRows out = all.take();
  // A row without a piece must be the last choice of all, whatever the pieces score.
  const float lowest = *std::ranges::min_element(pieces.scores);
  out.scores = pieces.scores;
  out.scores.resize(out.contents.size(), std::min(kScoreOfPadding, lowest - 1));
  return out;
}

std::vector<std::string> gguf_merges_of(const TokenizerContents& contents, const std::string& place) {
  std::vector<std::string> merges;
  merges.reserve(contents.merges.size());
  for (const Merges::Slot& slot : contents.merges) {
    const std::string_view left = *contents.vocabulary.content(static_cast<TokenId>(slot.key >> 32)),
                           right = *contents.vocabulary.content(static_cast<TokenId>(slot.key & 0xFFFFFFFF));
    if (left.find(' ') != left.npos || right.find(' ') != right.npos)
      refuse_for_gguf("no GGUF file can say a merge rule whose tokens have blanks", place + ": merges",
                      "tokens without blanks", printable(std::string(left) + ' ' + std::string(right)));
    merges.push_back(fmt::format("{} {}", left, right));
  }
  return merges;
}

}  // namespace sluice::tokenizer
