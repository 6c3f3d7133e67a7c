#include "tokenizer/export/number_joins.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/bpe/bpe.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

using Numbers = std::vector<std::string>;  // in a byte-level vocabulary's characters

// The characters of \p{N} by how they begin and end, whole ones included.
struct NumberParts {
  std::unordered_map<std::string, Numbers> by_begin, by_end;

  NumberParts() {
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (!is_numeric(c)) continue;
      std::string bytes, whole;
      append_utf8(bytes, c);
      append_byte_level(whole, bytes);
      for (std::size_t length = 1; length <= bytes.size(); ++length) {
        std::string begin, end;
        append_byte_level(begin, std::string_view(bytes).substr(0, length));
        append_byte_level(end, std::string_view(bytes).substr(bytes.size() - length));
        by_begin[begin].push_back(whole);
        by_end[end].push_back(whole);
      }
    }
  }
  static const Numbers* find(const std::unordered_map<std::string, Numbers>& parts,
                             std::optional<std::string_view> part) {
    if (!part) return nullptr;
    const auto found = parts.find(std::string(*part));
    return found == parts.end() ? nullptr : &found->second;
  }
};

Bpe bpe_of(const TokenizerContents& contents) {
  Merges merges;
  merges.reserve(contents.merges.size());
  for (const Merges::Slot& slot : contents.merges)
    merges.put(static_cast<TokenId>(slot.key >> 32), static_cast<TokenId>(slot.key & 0xFFFFFFFF), slot.merge);
  return {contents.vocabulary, std::move(merges), {}};
}

}  // namespace

bool joins_numbers(const TokenizerContents& contents) {
  if (contents.ignore_merges) return true;  // a longer number may be a token without a rule
  const NumberParts parts;
  const Bpe bpe = bpe_of(contents);
  Bpe::Scratch scratch;
  std::set<std::pair<std::string_view, std::string_view>> tried;
  for (const Merges::Slot& slot : contents.merges) {
    const auto token = [&](std::uint64_t id) {
      return contents.vocabulary.content(static_cast<TokenId>(id));
    };
    const Numbers* const lefts = NumberParts::find(parts.by_end, token(slot.key >> 32));
    const Numbers* const rights = NumberParts::find(parts.by_begin, token(slot.key & 0xFFFFFFFF));
    if (lefts == nullptr || rights == nullptr) continue;
    for (const std::string& left : *lefts) {
      for (const std::string& right : *rights) {
        if (!tried.emplace(left, right).second) continue;
        std::vector<TokenId> apart, together;
        bpe.encode(left, scratch, apart);
        bpe.encode(right, scratch, apart);
        bpe.encode(left + right, scratch, together);
        if (together != apart) return true;
      }
    }
  }
  return false;
}

}  // namespace sluice::tokenizer
