// Text to token ids and back, exactly as Hugging Face tokenizers does for the tokenizers of supported models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::model {

using TokenId = std::int32_t;

enum class AddSpecial { kNo, kYes };  // what the post-processor adds (bos, eos), as tokenizers' encode does
enum class ShowSpecial { kNo, kYes };

// The text of one sequence as its ids come. Not thread-safe; the tokenizer it comes from must outlive it.
class TextStream {
 public:
  virtual ~TextStream() = default;
  virtual std::string append(
      TokenId id) = 0;               // text that is final now: whole UTF-8 characters, possibly none
  virtual std::string finish() = 0;  // the rest; nothing may follow
};

struct TokenizerTables;  // tokenizer/compiled_tokenizer.h

// Immutable after loading; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<TokenId> encode(std::string_view text, AddSpecial add_special) const = 0;
  // The text of a whole sequence, as tokenizers' decode gives it. Rows of the vocabulary that are no token
  // (gaps, and what a model has beyond its tokenizer, see load_tokenizer) give nothing; ids outside are
  // Error(kInvalid).
  virtual std::string decode(std::span<const TokenId> ids, ShowSpecial special) const = 0;
  // decode() in steps: all append() results and finish() joined are decode() of the same ids. What a decoder
  // does may depend on the first token, so this cannot be built from decode() of parts.
  virtual std::unique_ptr<TextStream> start_text(ShowSpecial special) const = 0;
  virtual std::size_t vocab_size() const = 0;  // largest id + 1
  virtual std::optional<TokenId> id_of(
      std::string_view token) const = 0;  // exact content, added tokens included
  virtual bool is_special(TokenId id) const = 0;
  // All of it, as tables that point into it. Not of one that was itself made of such tables.
  virtual TokenizerTables compile() const = 0;
};

// Text as it grows token by token: the concatenation of all append() results plus finish() equals
// Tokenizer::decode of all ids so far, and never ends inside a UTF-8 character (finish() gives what is left,
// U+FFFD for bytes that never became a character, as decode does).
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, ShowSpecial special);  // tokenizer must outlive this
  std::string append(TokenId id);
  std::string finish();

 private:
  std::unique_ptr<TextStream>
      text_;  // holds only what may still change: parts of a character, a run of byte tokens
};

// `path` is a tokenizer.json, a tokenizer.model (SentencePiece), or a directory holding, in this order of
// preference, tokenizer.json, vocab.json + merges.txt (with tokenizer_config.json), tokenizer.model[.v*]. A
// directory without any gives null. tokenizer_config.json beside it supplies added tokens and bos/eos adding
// where the format itself does not; the vocab_size of a config.json beside it says which ids the model can
// give, tokens or not. Error(kInvalid) names file and field for anything broken; Error(kUnsupported) for a
// component type not known.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

}  // namespace sluice::model
