// Turns token contents back into text: the decoders of tokenizer.json, one token after another, so that text
// can be shown while it is being generated. Decoding a whole sequence is the same with all tokens at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/pattern.h"

namespace sluice::tokenizer {

enum class TokenEnds { kNo, kYes };

// Receives tokens, each in one or more parts. Not thread-safe.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void part(std::string_view text, TokenEnds ends) = 0;
  virtual void finish() = 0;  // no further token follows
};

// Immutable; thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // A sink that decodes tokens and passes the result on to `next`, which must outlive it.
  virtual std::unique_ptr<TokenSink> start(TokenSink& next) const = 0;
};

// Decoders hold text back until it is final: ByteLevel the bytes of an incomplete character; ByteFallback a
// run of byte tokens (a run that is not UTF-8 as a whole becomes replacement characters, so no part of it is
// final before its end); Strip at most `stop` characters.
std::unique_ptr<Decoder> byte_level_decoder();
std::unique_ptr<Decoder> byte_fallback_decoder();
std::unique_ptr<Decoder> fuse_decoder();
std::unique_ptr<Decoder> strip_decoder(char32_t content, std::size_t start, std::size_t stop);
enum class DropFirst { kNo, kYes };  // kYes: drops the replacement characters of the first token
std::unique_ptr<Decoder> metaspace_decoder(char32_t replacement, DropFirst drop_first);
std::unique_ptr<Decoder> replace_decoder(std::shared_ptr<const Pattern> pattern, std::string content);
std::unique_ptr<Decoder> sequence_decoder(std::vector<std::unique_ptr<Decoder>> decoders);
std::unique_ptr<Decoder> space_joining_decoder();  // the behaviour of tokenizers without a decoder

}  // namespace sluice::tokenizer
