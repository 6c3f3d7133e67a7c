// From the contents of tokens back to text: the decoders of tokenizer.json, one token after another, so that
// text can be shown while it is being generated. Decoding a whole sequence is the same with all tokens at
// once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/pattern.h"

namespace sluice::model {

enum class TokenEnds { kNo, kYes };

// Receives tokens, each in one or more parts. Not thread-safe.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void part(std::string_view text, TokenEnds ends) = 0;
  virtual void finish() = 0;  // no token follows
};

// Immutable; thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // A sink that decodes what it receives and passes it on to `next`, which must outlive it.
  virtual std::unique_ptr<TokenSink> start(TokenSink& next) const = 0;
};

// What is held back until it is final: bytes of an incomplete character (ByteLevel), a run of byte tokens
// (ByteFallback: a run that is not UTF-8 as a whole becomes replacement characters, so none of it is final
// before its end), and at most `stop` characters (Strip).
std::unique_ptr<Decoder> byte_level_decoder();
std::unique_ptr<Decoder> byte_fallback_decoder();
std::unique_ptr<Decoder> fuse_decoder();
std::unique_ptr<Decoder> strip_decoder(char32_t content, std::size_t start, std::size_t stop);
enum class DropFirst { kNo, kYes };  // kYes: replacement characters of the first token vanish
std::unique_ptr<Decoder> metaspace_decoder(char32_t replacement, DropFirst drop_first);
std::unique_ptr<Decoder> replace_decoder(std::shared_ptr<const Pattern> pattern, std::string content);
std::unique_ptr<Decoder> sequence_decoder(std::vector<std::unique_ptr<Decoder>> decoders);
std::unique_ptr<Decoder> space_joining_decoder();  // what tokenizers does where there is no decoder

}  // namespace sluice::model
