#include "tokenizer/stages/decoder.h"

#include <functional>
#include <optional>
#include <utility>

#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// A decoder whose sink a function makes.
class MadeBy final : public Decoder {
 public:
  using Make = std::function<std::unique_ptr<TokenSink>(TokenSink&)>;
  explicit MadeBy(Make make) : make_(std::move(make)) {}
  std::unique_ptr<TokenSink> start(TokenSink& next) const override { return make_(next); }

 private:
  Make make_;
};

template <class Sink, class... Args>
std::unique_ptr<Decoder> decoder_of(Args... args) {
  return std::make_unique<MadeBy>(
      [args...](TokenSink& next) { return std::make_unique<Sink>(next, args...); });
}

// Base of the decoders that must see a whole token.
class WholeTokenSink : public TokenSink {
 public:
  void part(std::string_view text, TokenEnds ends) final {
    if (ends == TokenEnds::kNo) {
      token_ += text;
    } else if (token_.empty()) {
      token(text);
    } else {
      token_ += text;
      token(token_);
      token_.clear();
    }
  }

 protected:
  virtual void token(std::string_view text) = 0;

 private:
  std::string token_;
};

class ByteLevelSink final : public WholeTokenSink {
 public:
  explicit ByteLevelSink(TokenSink& next) : next_(next) {}

  void token(std::string_view text) override {
    bytes_.clear();
    std::string_view rest = text;
    while (!rest.empty()) {
      const CodePoint c = decode_valid_utf8(rest);
      const int byte = byte_of_character(c.value);
      if (byte < 0) break;
      bytes_ += static_cast<char>(byte);
      rest.remove_prefix(c.length);
    }
    text_.clear();
    // A token with any character outside the alphabet (an added token) is plain text.
    utf8_.append(rest.empty() ? std::string_view(bytes_) : text, text_);
    if (!text_.empty()) next_.part(text_, TokenEnds::kNo);
  }
  void finish() override {
    text_.clear();
    utf8_.finish(text_);
    next_.part(text_, TokenEnds::kYes);  // the whole text is one token
    next_.finish();
  }

 private:
  TokenSink& next_;
  Utf8Lossy utf8_;
  std::string bytes_, text_;
};

class ByteFallbackSink final : public WholeTokenSink {
 public:
  explicit ByteFallbackSink(TokenSink& next) : next_(next) {}

  void token(std::string_view text) override {
    if (const auto byte = byte_of(text)) {
      run_ += *byte;
    } else {
      end_run();
      next_.part(text, TokenEnds::kYes);
    }
  }
  void finish() override {
    end_run();
    next_.finish();
  }

 private:
  // "<0xE4>"; accepts a sign like Rust's from_str_radix: "<0x+4>" is a byte there, too.
  static std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
    const int low = digit(token[4]);
    const int high = token[3] == '+' ? 0 : digit(token[3]);
    if (low < 0 || high < 0) return std::nullopt;
    return static_cast<char>(high * 16 + low);
  }
  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }
  void end_run() {
    if (run_.empty()) return;
    if (!find_invalid_utf8(run_)) {
      next_.part(run_, TokenEnds::kYes);
    } else {
      for (std::size_t i = 0; i < run_.size(); ++i) next_.part(kReplacementCharacter, TokenEnds::kYes);
    }
    run_.clear();
  }

  TokenSink& next_;
  std::string run_;  // bytes of the current run of byte tokens
};

class FuseSink final : public TokenSink {
 public:
  explicit FuseSink(TokenSink& next) : next_(next) {}
  void part(std::string_view text, TokenEnds) override { next_.part(text, TokenEnds::kNo); }
  void finish() override {
    next_.part("", TokenEnds::kYes);
    next_.finish();
  }

 private:
  TokenSink& next_;
};

class StripSink final : public TokenSink {
 public:
  StripSink(TokenSink& next, char32_t content, std::size_t start, std::size_t stop)
      : next_(next), start_(start), stop_(stop), content_(content) {
    append_utf8(content_bytes_, content);
  }

  void part(std::string_view text, TokenEnds ends) override {
    out_.clear();
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_valid_utf8(text.substr(at));
      take(c.value, text.substr(at, c.length));
      at += c.length;
    }
    next_.part(out_, ends);
    if (ends == TokenEnds::kYes) {
      leading_ = true;
      cut_ = held_ = 0;
    }
  }
  void finish() override { next_.finish(); }

 private:
  void take(char32_t c, std::string_view bytes) {
    if (leading_ && c == content_ && cut_ < start_) {
      ++cut_;
      return;
    }
    leading_ = false;
    if (c == content_) {  // may be the end of the token: holds back the last `stop_` characters
      if (held_ < stop_) {
        ++held_;
      } else {
        out_ += content_bytes_;
      }
      return;
    }
    for (; held_ > 0; --held_) out_ += content_bytes_;
    out_ += bytes;
  }

  TokenSink& next_;
  std::size_t start_, stop_;  // the most characters to cut at either end of a token
  char32_t content_;
  std::string content_bytes_, out_;
  bool leading_ = true;
  std::size_t cut_ = 0, held_ = 0;
};

class MetaspaceSink final : public TokenSink {
 public:
  MetaspaceSink(TokenSink& next, char32_t replacement, DropFirst drop_first)
      : next_(next), replacement_(replacement), drop_(drop_first == DropFirst::kYes) {}

  void part(std::string_view text, TokenEnds ends) override {
    out_.clear();
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_valid_utf8(text.substr(at));
      if (c.value != replacement_) {
        out_ += text.substr(at, c.length);
      } else if (!drop_) {
        out_ += ' ';
      }
      at += c.length;
    }
    next_.part(out_, ends);
    if (ends == TokenEnds::kYes) drop_ = false;
  }
  void finish() override { next_.finish(); }

 private:
  TokenSink& next_;
  char32_t replacement_;
  bool drop_;  // true until the first token has ended
  std::string out_;
};

class ReplaceSink final : public WholeTokenSink {
 public:
  ReplaceSink(TokenSink& next, std::shared_ptr<const Pattern> pattern, std::string content)
      : next_(next), pattern_(std::move(pattern)), content_(std::move(content)) {}

  void token(std::string_view text) override {
    out_.clear();
    pattern_->find(text, [&](const Match& match) {
      out_ += match.matched ? std::string_view(content_) : text.substr(match.begin, match.end - match.begin);
      check_grown(out_.size());
    });
    next_.part(out_, TokenEnds::kYes);
  }
  void finish() override { next_.finish(); }

 private:
  TokenSink& next_;
  std::shared_ptr<const Pattern> pattern_;
  std::string content_, out_;
};

class SpaceJoiningSink final : public TokenSink {
 public:
  explicit SpaceJoiningSink(TokenSink& next) : next_(next) {}
  void part(std::string_view text, TokenEnds ends) override {
    if (between_) next_.part(" ", TokenEnds::kNo);
    between_ = ends == TokenEnds::kYes;
    next_.part(text, ends);
  }
  void finish() override { next_.finish(); }

 private:
  TokenSink& next_;
  bool between_ = false;  // one token has ended and the next has not begun
};

class SequenceSink final : public TokenSink {
 public:
  SequenceSink(TokenSink& next, const std::vector<std::unique_ptr<Decoder>>& decoders) : first_(&next) {
    for (std::size_t i = decoders.size(); i-- > 0;) {
      sinks_.push_back(decoders[i]->start(*first_));
      first_ = sinks_.back().get();
    }
  }
  void part(std::string_view text, TokenEnds ends) override { first_->part(text, ends); }
  void finish() override { first_->finish(); }

 private:
  std::vector<std::unique_ptr<TokenSink>> sinks_;  // the last decoder's sink first
  TokenSink* first_;
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> decoders) : decoders_(std::move(decoders)) {}
  std::unique_ptr<TokenSink> start(TokenSink& next) const override {
    return std::make_unique<SequenceSink>(next, decoders_);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> decoders_;
};

}  // namespace

std::unique_ptr<Decoder> byte_level_decoder() { return decoder_of<ByteLevelSink>(); }
std::unique_ptr<Decoder> byte_fallback_decoder() { return decoder_of<ByteFallbackSink>(); }
std::unique_ptr<Decoder> fuse_decoder() { return decoder_of<FuseSink>(); }
std::unique_ptr<Decoder> strip_decoder(char32_t content, std::size_t start, std::size_t stop) {
  return decoder_of<StripSink>(content, start, stop);
}
std::unique_ptr<Decoder> metaspace_decoder(char32_t replacement, DropFirst drop_first) {
  return decoder_of<MetaspaceSink>(replacement, drop_first);
}
// Decoder and sinks share the pattern, because a sink does not know how long its decoder lives.
std::unique_ptr<Decoder> replace_decoder(std::shared_ptr<const Pattern> pattern, std::string content) {
  return decoder_of<ReplaceSink>(std::move(pattern), std::move(content));
}
std::unique_ptr<Decoder> sequence_decoder(std::vector<std::unique_ptr<Decoder>> decoders) {
  return std::make_unique<SequenceDecoder>(std::move(decoders));
}
std::unique_ptr<Decoder> space_joining_decoder() { return decoder_of<SpaceJoiningSink>(); }

}  // namespace sluice::tokenizer
