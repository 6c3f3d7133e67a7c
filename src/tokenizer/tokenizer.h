// Text to token ids and back, exactly as Hugging Face tokenizers does for the tokenizers of supported models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop_request.h"
#include "tokenizer/text/marked_text.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

// Whether encode adds the post-processor's tokens (bos, eos), as in tokenizers.
enum class AddSpecial { kNo, kYes };
enum class ShowSpecial { kNo, kYes };

// Turns the ids of one sequence into text as they come. Not thread-safe; the tokenizer must outlive it.
class TextStream {
 public:
  virtual ~TextStream() = default;
  // Returns text that is now final: whole UTF-8 characters, possibly none.
  virtual std::string append(TokenId id) = 0;
  virtual std::string finish() = 0;  // the rest; no call may follow
};

struct TokenizerTables;  // tokenizer/compiled_tokenizer.h

// Immutable after loading; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<TokenId> encode(std::string_view text, AddSpecial add_special) const = 0;
  // As encode(text.bytes(), AddSpecial::kNo), but added tokens match only where none of their bytes is the
  // request's (those of white space alone match everywhere). So text of a request never becomes a control
  // token; where it holds no added token's content, the ids are those of the whole string.
  virtual std::vector<TokenId> encode(const MarkedText& text) const = 0;
  // The text of a whole sequence, as tokenizers' decode gives it. Rows of the vocabulary without a token
  // (gaps, and rows that a model has beyond its tokenizer, see load_tokenizer) give no text; ids outside the
  // vocabulary are Error(kInvalid).
  virtual std::string decode(std::span<const TokenId> ids, ShowSpecial special) const = 0;
  // decode() in steps: all append() results and finish() joined equal decode() of the same ids. A decoder may
  // depend on the first token, so decode() of parts cannot replace it.
  virtual std::unique_ptr<TextStream> start_text(ShowSpecial special) const = 0;
  virtual std::size_t vocab_size() const = 0;  // largest id + 1
  virtual std::optional<TokenId> id_of(
      std::string_view token) const = 0;  // exact content, added tokens included
  virtual bool is_special(TokenId id) const = 0;
  // What the token adds to a text that does not begin with it, as bytes: parts of characters, too. Special
  // tokens have their contents; rows without a token nothing. Error as decode().
  virtual std::string bytes_of(TokenId id) const = 0;
  // The whole tokenizer as tables that point into it. REQUIRES: the tokenizer was not itself loaded from such
  // tables.
  virtual TokenizerTables compile() const = 0;
};

// Text that grows token by token: the concatenation of all append() results plus finish() equals
// Tokenizer::decode of all ids so far, and never ends inside a UTF-8 character (finish() returns the rest,
// with U+FFFD for bytes that never became a character, as decode does).
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, ShowSpecial special);  // tokenizer must outlive this
  std::string append(TokenId id);
  std::string finish();

 private:
  // Holds only text that may still change: parts of a character, a run of byte tokens.
  std::unique_ptr<TextStream> text_;
};

// `path` is a tokenizer.json, a tokenizer.model (SentencePiece), or a directory with, in this order of
// preference, tokenizer.json, vocab.json + merges.txt (with tokenizer_config.json), tokenizer.model[.v*].
// Null for a directory with none of them. tokenizer_config.json beside it supplies added tokens, and whether
// bos and eos are added where the format itself does not say; the vocab_size of a config.json beside it says
// which ids the model can give, tokens or not. Error(kInvalid) names file and field of broken content;
// Error(kUnsupported) an unknown component type. `stop` is asked while the large files are read.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const StopRequest& stop = {});

}  // namespace sluice::tokenizer
