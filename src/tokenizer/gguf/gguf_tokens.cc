#include "tokenizer/gguf/gguf_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tokenizer/text/printable.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {
namespace {

// A search table takes 16 bytes for each byte of an added token; published files have less than 100 kB.
constexpr std::size_t kMostAddedBytes = 4 << 20;

constexpr std::string_view kEnds[] = {
    "<|eot_id|>",    "<|im_end|>",      "<|end|>",    "<|return|>",
    "<|call|>",      "<end_of_turn>",   "<turn|>",    "<eos>",
    "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<EOT>",
    "[EOT]",         "[EOS]",           "[e~[",       "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

const std::vector<std::string>& contents_in(const GgufKeys& keys) {
  const std::vector<std::string>* const contents = keys.strings(GgufTokens::kContents);
  if (contents == nullptr || contents->empty())
    keys.fail("tokenizer without tokens", keys.place(GgufTokens::kContents), "an array of strings",
              contents == nullptr ? "no such key" : "an empty array");
  if (contents->size() > static_cast<std::size_t>(Vocabulary::kMaxId) + 1)
    keys.fail("too many tokens", keys.place(GgufTokens::kContents),
              fmt::format("at most {}", Vocabulary::kMaxId + 1), fmt::format("{}", contents->size()));
  return *contents;
}

}  // namespace

bool ends_an_answer(std::string_view content) { return std::ranges::find(kEnds, content) != std::end(kEnds); }

GgufTokens::GgufTokens(const GgufKeys& keys) : keys_(keys), contents_(contents_in(keys)) {
  const std::vector<std::int64_t> types = keys.integers(kTypes);
  if (types.size() != contents_.size())
    keys.fail("not as many types as tokens", keys.place(kTypes), fmt::format("{}", contents_.size()),
              keys.has(kTypes) ? fmt::format("{}", types.size()) : "no such key");
  types_.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 1 || types[i] > 6)
      keys.fail("token of an unknown type", keys.place(kTypes, i), "1 to 6", fmt::format("{}", types[i]));
    if (find_invalid_utf8(contents_[i]))
      keys.fail("token is not UTF-8 text", keys.place(kContents, i), "UTF-8", printable(contents_[i]));
    GgufTokenType type = static_cast<GgufTokenType>(types[i]);
    if (contents_[i].empty()) type = GgufTokenType::kUnused;
    if (type == GgufTokenType::kNormal && ends_an_answer(contents_[i])) type = GgufTokenType::kControl;
    types_.push_back(type);
  }
}

bool GgufTokens::is_special(TokenId id) const {
  return type(id) == GgufTokenType::kControl || type(id) == GgufTokenType::kUnknown;
}

std::optional<TokenId> GgufTokens::id_at(std::string_view key, TokenId fallback) const {
  if (const auto id = keys_.integer(key, size() - 1)) return static_cast<TokenId>(*id);
  if (fallback >= 0 && fallback < size() && is_special(fallback)) return fallback;
  return std::nullopt;
}

AddedTokens GgufTokens::added() const {
  AddedTokens added;
  std::size_t bytes = 0;
  for (TokenId id = 0; id < size(); ++id) {
    if (!is_special(id) && type(id) != GgufTokenType::kUserDefined) continue;
    const std::string place = keys_.place(kContents, static_cast<std::size_t>(id));
    if (content(id).size() > AddedTokens::kMaxContentBytes)
      keys_.fail("control or user-defined token is too long", place,
                 fmt::format("at most {} bytes", AddedTokens::kMaxContentBytes),
                 fmt::format("{}", content(id).size()));
    bytes += content(id).size();
    if (bytes > kMostAddedBytes)
      keys_.fail("too many control and user-defined tokens", place,
                 fmt::format("at most {} bytes of them", kMostAddedBytes), "more");
    if (added.knows(content(id)))
      keys_.fail("token is listed twice", place, "every content once", printable(content(id)));
    AddedToken token;
    token.content = content(id);
    token.id = id;
    token.special = is_special(id);
    added.add(std::move(token));
  }
  return added;
}

}  // namespace sluice::tokenizer
