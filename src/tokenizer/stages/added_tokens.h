// Tokens that are found in the text before it is cut in any other way ("<|im_start|>"): added_tokens of
// tokenizer.json and added_tokens_decoder of tokenizer_config.json.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "tokenizer/stages/normalizer.h"
#include "tokenizer/text/marked_text.h"
#include "tokenizer/vocabulary/byte_trie.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

struct AddedToken {
  std::string content;
  TokenId id = -1;
  bool single_word = false;  // matches only without a word character beside it
  bool lstrip = false;       // swallows the white space before it
  bool rstrip = false;       // swallows the white space after it
  bool normalized = false;   // matched in the normalised text, in normalised form
  bool special = false;      // decode(ShowSpecial::kNo) leaves it out
  // Text that decode() gives: the content, normalised if `normalized`; prepare() sets it.
  std::string shown;
  bool blank = false;  // consists of white space alone, so it can be no control token; prepare() sets it
};

// Immutable after prepare(); thread-safe.
class AddedTokens {
 public:
  static constexpr std::size_t kMaxContentBytes = 1024;  // bounds a search at one place

  // Does not check the id against a model. Ignores later tokens of the same content.
  void add(AddedToken token);
  // Builds the search tables; `normalizer` may be null.
  void prepare(const Normalizer* normalizer);

  enum class Stage { kRaw, kNormalized };
  struct Part {
    std::size_t begin, end;  // bytes
    TokenId id;              // -1: plain text
  };
  // Cuts `text` into tokens of this stage and the text between them. Leftmost match first, then the longest.
  // `request`: ranges in which no token matches, nor across their borders, except blank ones.
  void split(std::string_view text, Stage stage, std::span<const ByteRange> request,
             FunctionRef<void(const Part&)> report) const;
  void split(std::string_view text, Stage stage, FunctionRef<void(const Part&)> report) const {
    split(text, stage, {}, report);
  }
  bool any_in(Stage stage) const { return !(stage == Stage::kRaw ? raw_ : normalized_).empty(); }

  bool knows(std::string_view content) const { return id_of(content).has_value(); }
  std::optional<TokenId> id_of(std::string_view content) const { return contents_.find(content); }
  bool knows(TokenId id) const { return contents_.content(id).has_value(); }
  // The functions below need prepare() first.
  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(TokenId id) const;
  bool is_special(TokenId id) const;
  std::size_t size() const { return tokens_.size(); }
  std::span<const AddedToken> tokens() const { return tokens_; }  // in the order in which they were added
  TokenId end_id() const;                                         // largest id + 1

 private:
  std::optional<ByteTrie::Found> allowed(const ByteTrie& trie, std::string_view rest,
                                         std::size_t own_bytes) const;

  std::vector<AddedToken> tokens_;
  Vocabulary contents_;                                 // content → id
  std::vector<std::pair<TokenId, std::size_t>> by_id_;  // sorted by prepare(); index into tokens_
  ByteTrie raw_, normalized_;
};

}  // namespace sluice::tokenizer
