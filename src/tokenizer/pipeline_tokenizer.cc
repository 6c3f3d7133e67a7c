#include "tokenizer/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "tokenizer/compiled_tokenizer.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

class StringSink final : public TokenSink {
 public:
  void part(std::string_view text, TokenEnds) override { out_ += text; }
  void finish() override {}
  std::string take() { return std::exchange(out_, {}); }

 private:
  std::string out_;
};

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}
std::size_t common_suffix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first -
                                  a.rbegin());
}

// "<0x0A>": a byte, in vocabularies that fall back on bytes.
std::optional<char> byte_token(std::string_view content) {
  if (content.size() != 6 || !content.starts_with("<0x") || content.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const char* const end = content.data() + 5;
  const auto [stop, error] = std::from_chars(content.data() + 3, end, byte, 16);
  return error == std::errc() && stop == end ? std::optional(static_cast<char>(byte)) : std::nullopt;
}

// The bytes that the characters of a byte-level vocabulary stand for; empty if some character stands for
// none.
std::optional<std::string> byte_level_bytes(std::string_view content) {
  std::string bytes;
  while (!content.empty()) {
    const CodePoint c = decode_utf8(content);
    const int byte = c.length == 0 ? -1 : byte_of_character(c.value);
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    content.remove_prefix(c.length);
  }
  return bytes;
}

// Work that is spent on finding the places of ranges in normalised text.
constexpr std::size_t kMostNormalizedBytes = 256 * kMiB;

// Where ranges of `text` are in its normalised form, at least: what a normaliser makes of the text up to a
// border, and of that behind it, tells where the border is. A character that both sides make together counts
// as the request's. For texts that would take too long, all from the first range to the last one is.
std::vector<ByteRange> normalized_ranges(const Normalizer& normalizer, std::string_view text,
                                         std::string_view normalized, const std::vector<ByteRange>& request) {
  const bool one = 2 * request.size() > kMostNormalizedBytes / (text.size() + 1);
  const std::vector<ByteRange> ranges =
      one ? std::vector<ByteRange>{{request.front().begin, request.back().end}} : request;
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    std::string before(text.substr(0, range.begin)), behind(text.substr(range.end));
    normalizer.normalize(before);
    normalizer.normalize(behind);
    std::size_t begin = common_prefix(before, normalized);
    const std::size_t end = normalized.size() - common_suffix(behind, normalized);
    if (!result.empty()) begin = std::max(begin, result.back().end);
    if (begin < end) result.push_back({begin, end});
  }
  return result;
}

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
    parts_.added.prepare(parts_.normalizer.get());
    if (!parts_.decoder) parts_.decoder = space_joining_decoder();
    if (!parts_.unigram) return;
    controls_.resize(static_cast<std::size_t>(parts_.vocabulary().end_id()));
    for (const AddedToken& token : parts_.added.tokens())
      if (!token.blank && token.id < parts_.vocabulary().end_id() &&
          token.id != parts_.unigram->options().unknown)
        controls_[static_cast<std::size_t>(token.id)] = true;
  }

  std::vector<TokenId> encode(std::string_view text, AddSpecial add_special) const override {
    check_text(text);
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 4 + parts_.around.before.size() + parts_.around.after.size());
    const bool special = add_special == AddSpecial::kYes;
    if (special) ids.insert(ids.end(), parts_.around.before.begin(), parts_.around.before.end());
    append_ids(text, {}, ids);
    if (special) ids.insert(ids.end(), parts_.around.after.begin(), parts_.around.after.end());
    return ids;
  }

  std::vector<TokenId> encode(const MarkedText& text) const override {
    check_text(text.bytes());
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 4);
    append_ids(text.bytes(), text.request(), ids);
    return ids;
  }

  std::string decode(std::span<const TokenId> ids, ShowSpecial special) const override {
    std::string out;
    const auto stream = start_text(special);
    for (const TokenId id : ids) out += stream->append(id);
    out += stream->finish();
    return out;
  }

  std::unique_ptr<TextStream> start_text(ShowSpecial special) const override {
    return std::make_unique<Stream>(*this, special);
  }

  std::size_t vocab_size() const override {
    return static_cast<std::size_t>(std::max(parts_.vocabulary().end_id(), parts_.added.end_id()));
  }
  std::optional<TokenId> id_of(std::string_view token) const override {
    if (const AddedToken* added = parts_.added.find(token)) return added->id;
    return parts_.vocabulary().find(token);
  }
  bool is_special(TokenId id) const override { return parts_.added.is_special(id); }

  std::string bytes_of(TokenId id) const override {
    const std::optional<std::string_view> content = shown_text_of(id);
    if (!content || parts_.added.find(id) != nullptr) return std::string(content.value_or(""));
    // Behind another token, since decoders may treat the first one in a way of their own.
    StringSink text;
    const std::unique_ptr<TokenSink> first = parts_.decoder->start(text);
    first->part("a", TokenEnds::kYes);
    text.take();
    first->part(*content, TokenEnds::kYes);
    first->finish();
    std::string shown = text.take();
    if (shown.find(kReplacementCharacter) == shown.npos) return shown;
    if (const std::optional<char> byte = byte_token(*content)) return {*byte};
    return byte_level_bytes(*content).value_or(shown);
  }

  TokenizerTables compile() const override {
    SLUICE_CHECK(!parts_.components.is_null());
    TokenizerTables out;
    out.description = {{"type", parts_.bpe ? "BPE" : "Unigram"},
                       {"components", parts_.components},
                       {"before", parts_.around.before},
                       {"after", parts_.around.after},
                       {"added", describe_added_tokens(parts_.added)},
                       {"model_vocab", parts_.model_vocab}};
    add_vocabulary(parts_.vocabulary(), false, out);
    if (parts_.bpe) {
      const BpeOptions& options = parts_.bpe->options();
      out.description["unknown"] = describe_id(options.unknown);
      out.description["fuse_unknown"] = options.fuse_unknown;
      out.description["byte_fallback"] = options.byte_fallback;
      out.description["ignore_merges"] = options.ignore_merges;
      out.tables.push_back(store::named_table("merges", parts_.bpe->merges().slots()));
    } else {
      const UnigramOptions& options = parts_.unigram->options();
      out.description["unknown"] = describe_id(options.unknown);
      out.description["byte_fallback"] = options.byte_fallback;
      out.tables.push_back(store::named_table("scores", parts_.unigram->scores()));
      out.tables.push_back(store::named_table("tree", parts_.unigram->trie().nodes()));
      out.tables.push_back(store::named_table("roots", parts_.unigram->trie().roots()));
    }
    return out;
  }

 private:
  struct Encoding {
    std::vector<TokenId>& ids;
    Bpe::Scratch bpe;
    Unigram::Scratch unigram;
  };

  void append_ids(std::string_view text, std::span<const ByteRange> request,
                  std::vector<TokenId>& ids) const {
    Encoding encoding{ids, {}, {}};
    if (!request.empty()) encoding.unigram.refused = &controls_;
    parts_.added.split(text, AddedTokens::Stage::kRaw, request, [&](const AddedTokens::Part& part) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        encode_text(text.substr(part.begin, part.end - part.begin), part.begin == 0,
                    ranges_within(request, part.begin, part.end), encoding);
      }
    });
  }

  void encode_text(std::string_view text, bool at_start, std::vector<ByteRange> request,
                   Encoding& encoding) const {
    std::string normalized;
    if (parts_.normalizer) {
      normalized = text;
      parts_.normalizer->normalize(normalized);
      check_grown(normalized.size());
      // Only tokens of this stage need to know.
      if (!request.empty() && parts_.added.any_in(AddedTokens::Stage::kNormalized))
        request = normalized_ranges(*parts_.normalizer, text, normalized, request);
      text = normalized;
    }
    parts_.added.split(text, AddedTokens::Stage::kNormalized, request, [&](const AddedTokens::Part& part) {
      if (part.id >= 0) {
        encoding.ids.push_back(part.id);
        return;
      }
      const Piece piece{text.substr(part.begin, part.end - part.begin), at_start && part.begin == 0};
      const auto encode_piece = [&](const Piece& p) {
        if (parts_.bpe)
          parts_.bpe->encode(p.text, encoding.bpe, encoding.ids);
        else
          parts_.unigram->encode(p.text, encoding.unigram, encoding.ids);
      };
      if (parts_.pre_tokenizer) {
        parts_.pre_tokenizer->split(piece, encode_piece);
      } else {
        encode_piece(piece);
      }
    });
  }

  // Empty for a row of the vocabulary without a token.
  std::optional<std::string_view> shown_text_of(TokenId id) const {
    if (const AddedToken* added = parts_.added.find(id)) return added->shown;
    if (const auto content = parts_.vocabulary().content(id)) return *content;
    check_ids({&id, 1}, std::max(vocab_size(), static_cast<std::size_t>(parts_.model_vocab)),
              Setting::kTokens, ErrorKind::kUsage);
    return std::nullopt;
  }

  class Stream final : public TextStream {
   public:
    Stream(const PipelineTokenizer& tokenizer, ShowSpecial special)
        : tokenizer_(tokenizer), special_(special), first_(tokenizer.parts_.decoder->start(text_)) {}
    std::string append(TokenId id) override {
      const std::optional<std::string_view> content = tokenizer_.shown_text_of(id);
      if (!content || (special_ == ShowSpecial::kNo && tokenizer_.is_special(id))) return {};
      first_->part(*content, TokenEnds::kYes);
      return text_.take();
    }
    std::string finish() override {
      first_->finish();
      return text_.take();
    }

   private:
    const PipelineTokenizer& tokenizer_;  // must outlive this
    ShowSpecial special_;
    StringSink text_;
    std::unique_ptr<TokenSink> first_;
  };

  TokenizerParts parts_;
  // By id, for a Unigram model: added tokens, which its vocabulary has, too. Text of a request cannot become
  // one.
  std::vector<bool> controls_;
};

}  // namespace

void read_components(Json components, const std::string& name, TokenizerParts& parts) {
  const JsonObject object(components, name);
  for (const std::string_view field : {"normalizer", "pre_tokenizer", "decoder"})
    require_few_components(object.find(field), fmt::format("{}: {}", name, field));
  parts.normalizer = read_normalizer(object.find("normalizer"), name + ": normalizer");
  parts.pre_tokenizer = read_pre_tokenizer(object.find("pre_tokenizer"), name + ": pre_tokenizer");
  parts.decoder = read_decoder(object.find("decoder"), name + ": decoder");
  parts.components = std::move(components);
}

namespace {

std::vector<TokenId> read_ids(const JsonObject& description, std::string_view key) {
  std::vector<TokenId> ids;
  for (const std::int64_t id : description.integers_or(key, {}, 0, Vocabulary::kMaxId))
    ids.push_back(static_cast<TokenId>(id));
  return ids;
}

std::unique_ptr<Unigram> read_unigram(const JsonObject& description, const store::TableSidecar& tables,
                                      Vocabulary vocabulary) {
  std::vector<double> scores = tables.read<double>("scores");
  const auto fail = [&](std::string_view expected) {
    throw Error(ErrorKind::kInvalid, "tables of a Unigram model do not fit together")
        .in(tables.name())
        .expected(expected);
  };
  const auto end = static_cast<std::size_t>(vocabulary.end_id());
  if (scores.size() != end) fail("a score for every id");
  if (!std::ranges::all_of(scores, [](double score) { return std::isfinite(score); })) fail("finite scores");
  if (vocabulary.longest_bytes() > Unigram::kMaxTokenBytes) fail("shorter tokens");
  const UnigramOptions options{read_described_id(description, "unknown", vocabulary.end_id()),
                               description.boolean_or("byte_fallback", false)};
  ByteTrie tree =
      ByteTrie::of_tables(tables.read<ByteTrie::Node>("tree"), tables.read<std::uint32_t>("roots"),
                          static_cast<std::uint32_t>(end), tables.name());
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), options, std::move(tree));
}

}  // namespace

std::unique_ptr<Tokenizer> load_compiled_pipeline(const JsonObject& description,
                                                  const store::TableSidecar& tables) {
  TokenizerParts parts;
  read_components(description.object("components").value(), description.name(), parts);
  parts.components = nullptr;  // a compiled tokenizer is never compiled again
  parts.added = read_described_tokens(description);
  parts.around = {read_ids(description, "before"), read_ids(description, "after")};
  parts.model_vocab =
      static_cast<TokenId>(description.integer("model_vocab", 0, std::numeric_limits<TokenId>::max()));
  Vocabulary vocabulary = read_vocabulary(tables, false);
  if (description.string("type") == "Unigram") {
    parts.unigram = read_unigram(description, tables, std::move(vocabulary));
  } else {
    const BpeOptions options{read_described_id(description, "unknown", vocabulary.end_id()),
                             description.boolean_or("fuse_unknown", false),
                             description.boolean_or("byte_fallback", false),
                             description.boolean_or("ignore_merges", false)};
    Merges merges = Merges::of_table(tables.read<Merges::Slot>("merges"), vocabulary.end_id(), tables.name());
    parts.bpe = std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), options);
  }
  return make_pipeline_tokenizer(std::move(parts));
}

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts) {
  SLUICE_CHECK((parts.bpe != nullptr) != (parts.unigram != nullptr));
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace sluice::tokenizer
