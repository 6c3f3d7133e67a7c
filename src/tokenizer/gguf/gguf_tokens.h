// The tokens of a GGUF file: contents and types, checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_model.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

enum class GgufTokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

class GgufTokens {
 public:
  // Error(kInvalid) for absent keys, lengths that disagree, unknown types, contents that are not UTF-8. A
  // normal token whose text ends an answer everywhere ("<|im_end|>") counts as a control token. An empty
  // content counts as unused. `keys` must outlive this.
  explicit GgufTokens(const GgufKeys& keys);

  TokenId size() const { return static_cast<TokenId>(types_.size()); }
  const std::string& content(TokenId id) const { return contents_[static_cast<std::size_t>(id)]; }
  GgufTokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
  // Left out when text is shown without special tokens.
  bool is_special(TokenId id) const;

  // The id that `key` gives; else `fallback` if that is a special token; else nothing.
  std::optional<TokenId> id_at(std::string_view key, TokenId fallback = -1) const;
  std::optional<TokenId> bos(const GgufModel& model) const {
    return id_at("tokenizer.ggml.bos_token_id", model.bos);
  }
  std::optional<TokenId> eos(const GgufModel& model) const {
    return id_at("tokenizer.ggml.eos_token_id", model.eos);
  }
  // Control, unknown and user-defined tokens, which are found in a text before all else.
  AddedTokens added() const;

  static constexpr std::string_view kContents = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type";

 private:
  const GgufKeys& keys_;
  const std::vector<std::string>& contents_;
  std::vector<GgufTokenType> types_;
};

// Texts of tokens that end an answer, whatever a file says about them.
bool ends_an_answer(std::string_view content);

}  // namespace sluice::tokenizer
