#include "tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "tokenizer/bpe/bpe_builder.h"
#include "tokenizer/compiled_tokenizer.h"
#include "tokenizer/sentencepiece/score_bpe.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// A piece as text: blanks where words begin.
std::string with_blanks(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const std::size_t space = std::min(piece.find(kWordBegin), piece.size());
    text += piece.substr(0, space);
    piece.remove_prefix(space);
    if (piece.empty()) break;
    text += ' ';
    piece.remove_prefix(kWordBegin.size());
  }
  return text;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceModel model, AddedTokens added)
      : model_(std::move(model)), bpe_(model_), added_(std::move(added)) {
    added_.prepare(nullptr);
  }

  void configure(const TokenizerConfig& config) {
    model_vocab_ = config.model_vocab;
    const auto id_of_special = [this](const std::string& content, TokenId fallback) {
      return content.empty() ? fallback : id_of(content).value_or(fallback);
    };
    bos_ = config.add_bos.value_or(true) ? id_of_special(config.bos, model_.bos) : -1;
    eos_ = config.add_eos.value_or(false) ? id_of_special(config.eos, model_.eos) : -1;
  }
  void configure(const SentencePieceFrame& frame) {
    model_vocab_ = frame.model_vocab;
    bos_ = frame.bos;
    eos_ = frame.eos;
  }

  TokenizerTables compile() const override {
    TokenizerTables out;
    out.description = {{"type", "SentencePiece"},
                       {"added", describe_added_tokens(added_)},
                       {"before", describe_id(bos_)},
                       {"after", describe_id(eos_)},
                       {"model_vocab", model_vocab_},
                       {"unknown", model_.unknown},
                       {"unknown_surface", model_.unknown_surface},
                       {"add_dummy_prefix", model_.add_dummy_prefix},
                       {"remove_extra_whitespaces", model_.remove_extra_whitespaces},
                       {"escape_whitespaces", model_.escape_whitespaces}};
    add_vocabulary(model_.merged, false, out);
    add_vocabulary(model_.reserved, true, out);
    out.tables.push_back(store::named_table("scores", std::span(model_.scores)));
    out.tables.push_back(store::named_table("types", std::span(model_.types)));
    out.tables.push_back(store::named_table("bytes", std::span(model_.byte_ids)));
    return out;
  }

  std::vector<TokenId> encode(std::string_view text, AddSpecial add_special) const override {
    check_text(text);
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 2);
    if (add_special == AddSpecial::kYes && bos_ >= 0) ids.push_back(bos_);
    append_ids(text, {}, ids);
    if (add_special == AddSpecial::kYes && eos_ >= 0) ids.push_back(eos_);
    return ids;
  }

  std::vector<TokenId> encode(const MarkedText& text) const override {
    check_text(text.bytes());
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3);
    append_ids(text.bytes(), text.request(), ids);
    return ids;
  }

  std::string decode(std::span<const TokenId> ids, ShowSpecial special) const override {
    std::string out;
    Stream stream(*this, special);
    for (const TokenId id : ids) out += stream.append(id);
    return out + stream.finish();
  }

  std::unique_ptr<TextStream> start_text(ShowSpecial special) const override {
    return std::make_unique<Stream>(*this, special);
  }
  std::size_t vocab_size() const override {
    return static_cast<std::size_t>(std::max(model_.size(), added_.end_id()));
  }
  std::optional<TokenId> id_of(std::string_view token) const override {
    if (const auto id = added_.id_of(token)) return id;
    if (const auto id = model_.reserved.find(token)) return id;
    return model_.merged.find(token);
  }
  bool is_special(TokenId id) const override {
    return added_.is_special(id) || (id >= 0 && id < model_.size() &&
                                     model_.types[static_cast<std::size_t>(id)] == PieceType::kControl);
  }
  std::string bytes_of(TokenId id) const override {
    if (id < 0 || id >= model_.size()) return Stream(*this, ShowSpecial::kYes).append(id);
    const std::string_view piece = model_.content(id);
    switch (model_.types[static_cast<std::size_t>(id)]) {
      case PieceType::kByte:
        return {static_cast<char>(std::ranges::find(model_.byte_ids, id) - model_.byte_ids.begin())};
      case PieceType::kControl:
        return std::string(piece);
      case PieceType::kUnknown:
        return model_.unknown_surface;
      default:
        return with_blanks(piece);
    }
  }

 private:
  void append_ids(std::string_view text, std::span<const ByteRange> request,
                  std::vector<TokenId>& ids) const {
    added_.split(text, AddedTokens::Stage::kRaw, request, [&](const AddedTokens::Part& raw) {
      if (raw.id >= 0) return ids.push_back(raw.id);
      const std::string_view between = text.substr(raw.begin, raw.end - raw.begin);
      const std::vector<ByteRange> own = ranges_within(request, raw.begin, raw.end);
      added_.split(between, AddedTokens::Stage::kNormalized, own, [&](const AddedTokens::Part& part) {
        if (part.id >= 0) return ids.push_back(part.id);
        bpe_.encode(normalize(between.substr(part.begin, part.end - part.begin)), ids);
      });
    });
  }

  // Normalizer::Normalize of sentencepiece, without a character map.
  std::string normalize(std::string_view text) const {
    const std::string_view space = model_.escape_whitespaces ? kWordBegin : std::string_view(" ");
    const bool collapse = model_.remove_extra_whitespaces;
    while (collapse && text.starts_with(' ') && bpe_.user_defined_prefix(text) == 0) text.remove_prefix(1);
    if (text.empty()) return {};
    std::string out;
    out.reserve(text.size() + text.size() / 2 + space.size());
    if (model_.add_dummy_prefix) out += space;
    bool after_space = collapse;
    while (!text.empty()) {
      const std::size_t user_defined = bpe_.user_defined_prefix(text);
      const std::size_t length = user_defined > 0 ? user_defined : decode_valid_utf8(text).length;
      std::string_view part = text.substr(0, length);
      text.remove_prefix(length);
      while (after_space && part.starts_with(' ')) part.remove_prefix(1);
      if (part.empty()) continue;
      for (const char c : part) {
        if (c == ' ') {
          out += space;
        } else {
          out += c;
        }
      }
      after_space = collapse && part.ends_with(' ');
    }
    while (collapse && out.ends_with(space)) out.erase(out.size() - space.size());
    return out;
  }

  // SentencePieceProcessor::Decode, one id after another.
  class Stream final : public TextStream {
   public:
    Stream(const SentencePieceTokenizer& tokenizer, ShowSpecial special)
        : tokenizer_(tokenizer), model_(tokenizer.model_), special_(special) {}

    std::string append(TokenId id) override {
      std::string out;
      if (id < 0 || id >= model_.size()) {
        const AddedToken* added = tokenizer_.added_.find(id);
        if (added == nullptr) {
          check_ids({&id, 1},
                    std::max(tokenizer_.vocab_size(), static_cast<std::size_t>(tokenizer_.model_vocab_)),
                    Setting::kTokens, ErrorKind::kUsage);
          return out;  // a row of the vocabulary without a token
        }
        end_bytes(out);
        if (special_ == ShowSpecial::kYes || !added->special) give(added->content, out);
        return out;
      }
      const std::string_view piece = model_.content(id);
      switch (model_.types[static_cast<std::size_t>(id)]) {
        case PieceType::kByte:
          append_byte(id, out);
          return out;
        case PieceType::kControl:
          end_bytes(out);
          // Like any piece, it decides whether the next piece is the first.
          if (prefix_dropped_) at_start_ = false;
          if (special_ == ShowSpecial::kYes) {
            // Control pieces do not count as text: decoding continues as if this one were absent.
            out += piece;
          }
          prefix_dropped_ = false;
          return out;
        case PieceType::kUnknown:
          end_bytes(out);
          give(model_.unknown_surface, out);
          return out;
        default:
          end_bytes(out);
          append_piece(piece, out);
          return out;
      }
    }

    std::string finish() override {
      std::string out;
      end_bytes(out);
      return out;
    }

   private:
    void give(std::string_view text, std::string& out) {
      at_start_ = at_start_ && !prefix_dropped_ && text.empty();
      prefix_dropped_ = false;
      out += text;
    }

    void append_piece(std::string_view piece, std::string& out) {
      if (prefix_dropped_) at_start_ = false;
      prefix_dropped_ = false;
      if (at_start_ && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) &&
          piece.starts_with(kWordBegin)) {
        piece.remove_prefix(kWordBegin.size());
        // Where white space is collapsed, all leading white space goes; else only the dummy prefix.
        prefix_dropped_ = !model_.remove_extra_whitespaces;
      }
      const std::size_t before = out.size();
      out += with_blanks(piece);
      if (out.size() > before) at_start_ = false;
    }

    void append_byte(TokenId id, std::string& out) {
      const auto& ids = model_.byte_ids;
      bytes_ += static_cast<char>(std::find(ids.begin(), ids.end(), id) - ids.begin());
      flush_bytes(out, false);
    }

    // Every byte that is not part of a character becomes one U+FFFD. Up to three bytes wait for the rest of
    // their character.
    void flush_bytes(std::string& out, bool last) {
      std::string_view rest = bytes_;
      while (!rest.empty()) {
        const CodePoint c = decode_utf8(rest);
        if (c.length > 0) {
          out += rest.substr(0, c.length);
          rest.remove_prefix(c.length);
        } else if (!last && may_become_character(rest)) {
          break;
        } else {
          out += kReplacementCharacter;
          rest.remove_prefix(1);
        }
        at_start_ = false;
      }
      bytes_ = std::string(rest);
    }
    void end_bytes(std::string& out) {
      if (!bytes_.empty()) flush_bytes(out, true);
    }
    static bool may_become_character(std::string_view bytes) {
      Utf8Lossy utf8;
      std::string text;
      utf8.append(bytes, text);
      return text.empty();
    }

    const SentencePieceTokenizer& tokenizer_;  // must outlive this
    const SentencePieceModel& model_;
    ShowSpecial special_;
    bool at_start_ = true;         // no text yet: a leading U+2581 is the dummy prefix
    bool prefix_dropped_ = false;  // the piece before dropped it
    std::string bytes_;            // the beginning of an incomplete character
  };

  SentencePieceModel model_;
  ScoreBpe bpe_;
  AddedTokens added_;
  TokenId bos_ = -1, eos_ = -1;  // added around a text; -1: not added
  TokenId model_vocab_ = 0;      // ids below it without a token decode to nothing
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view data, const std::string& name,
                                              const TokenizerConfig& config) {
  SentencePieceModel model = read_sentencepiece_model(data, name);
  AddedTokens added;
  for (const AddedToken& token : config.added) {
    const bool in_model = token.id < model.size();
    if (in_model ? model.content(token.id) != token.content
                 : model.merged.find(token.content) || model.reserved.find(token.content)) {
      throw Error(ErrorKind::kInvalid, "added token has the id of another piece")
          .in("tokenizer_config.json: added_tokens_decoder")
          .found(fmt::format("{}", token.id))
          .fix("download the tokenizer files again");
    }
    added.add(token);
  }
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(added));
  tokenizer->configure(config);
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_compiled_sentencepiece(const JsonObject& description,
                                                       const store::TableSidecar& tables) {
  SentencePieceModel model;
  model.merged = read_vocabulary(tables, false);
  model.reserved = read_vocabulary(tables, true);
  model.scores = tables.read<float>("scores");
  model.types = tables.read<PieceType>("types");
  model.byte_ids = tables.read<TokenId>("bytes");
  const auto check = [&](bool fits, std::string_view expected) {
    if (fits) return;
    throw Error(ErrorKind::kInvalid, "tables of a SentencePiece model do not fit together")
        .in(tables.name())
        .expected(expected);
  };
  const auto type_of = [&](TokenId id) { return model.types[static_cast<std::size_t>(id)]; };
  check(!model.types.empty() && model.types.size() <= std::size_t{Vocabulary::kMaxId} + 1, "some pieces");
  check(model.scores.size() == model.types.size() && model.merged.end_id() <= model.size() &&
            model.reserved.end_id() <= model.size(),
        "as many scores and contents as types");
  check(std::ranges::none_of(model.scores, [](float score) { return std::isnan(score); }),
        "scores that are numbers");
  check(std::max(model.merged.longest_bytes(), model.reserved.longest_bytes()) <
            SentencePieceModel::kMaxPieceBytes,
        "shorter pieces");
  for (TokenId id = 0; id < model.size(); ++id) {
    check(type_of(id) >= PieceType::kNormal && type_of(id) <= PieceType::kByte, "known types");
    check(model.merged.content(id) || model.reserved.content(id), "a content of every piece");
  }
  check(model.byte_ids.empty() || model.byte_ids.size() == 256, "256 bytes, or none");
  for (const TokenId id : model.byte_ids)
    check(id >= 0 && id < model.size() && type_of(id) == PieceType::kByte, "pieces that are bytes");
  for (TokenId id = 0; id < model.size(); ++id)
    check(type_of(id) != PieceType::kByte || std::ranges::count(model.byte_ids, id) == 1, "a byte of each");
  model.unknown = static_cast<TokenId>(description.integer("unknown", 0, model.size() - 1));
  model.unknown_surface = description.string("unknown_surface");
  model.add_dummy_prefix = description.boolean_or("add_dummy_prefix", true);
  model.remove_extra_whitespaces = description.boolean_or("remove_extra_whitespaces", true);
  model.escape_whitespaces = description.boolean_or("escape_whitespaces", true);
  AddedTokens added = read_described_tokens(description);
  const SentencePieceFrame frame{
      .bos = read_described_id(description, "before", Vocabulary::kMaxId + 1).value_or(-1),
      .eos = read_described_id(description, "after", Vocabulary::kMaxId + 1).value_or(-1),
      .model_vocab =
          static_cast<TokenId>(description.integer("model_vocab", 0, std::numeric_limits<TokenId>::max()))};
  return make_sentencepiece(std::move(model), std::move(added), frame);
}

std::unique_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, AddedTokens added,
                                              const SentencePieceFrame& frame) {
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(added));
  tokenizer->configure(frame);
  return tokenizer;
}

}  // namespace sluice::tokenizer
