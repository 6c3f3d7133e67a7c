#include "tokenizer/export/gguf_tokenizer_keys.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "store/source/gguf.h"
#include "tokenizer/chat/chat_sources.h"
#include "tokenizer/export/gguf_cut.h"
#include "tokenizer/export/gguf_token_rows.h"
#include "tokenizer/export/tokenizer_contents.h"
#include "tokenizer/export/tokenizer_directory.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

using Keys = std::vector<std::pair<std::string, store::GgufWritten>>;

// Texts whose ids are compared: words, numbers, signs, blanks, line ends, other scripts, a mark, no token.
constexpr std::string_view kTexts[] = {
    "Hello, World's 12345!\n\n  x = {'a': 1}\t\r\n",
    "HELLO'LL we'd   end ",
    " a",
    "\xC3\xA9",
    "na\xC3\xAFve \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82",
    "e\xCC\x81 \xF0\x9F\x98\x80\xE2\x80\xA6 [PAD0]"};

// A tokenizer.json of merges on characters cannot be written, but a tokenizer.model beside it can.
std::unique_ptr<Tokenizer> pieces_beside(const std::string& directory, const Tokenizer& whole, TokenId rows) {
  const std::string path = (std::filesystem::path(directory) / "tokenizer.model").string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return nullptr;
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(path);
  check_rows(*tokenizer, directory, rows);
  const TokenizerContents contents = contents_of(*tokenizer);
  for (TokenId id = 0; id < contents.pieces.size(); ++id)
    if (whole.id_of(contents.pieces.content(id)) != id)
      refuse_for_gguf("tokenizer.model has another vocabulary than the tokenizer.json beside it", path,
                      fmt::format("piece {} of the same text", id), printable(contents.pieces.content(id)));
  return tokenizer;
}

// A token that encode() adds; else the one that the files name, or nothing.
std::optional<TokenId> id_of(const Tokenizer& tokenizer, const ChatSources& names, std::string_view name,
                             const std::vector<TokenId>& added, const std::string& place) {
  std::optional<TokenId> named;
  for (const auto& [own, content] : names.tokens) {
    if (own != name) continue;
    named = tokenizer.id_of(content);
    if (!named)
      throw Error(ErrorKind::kInvalid, "the files name a token that the tokenizer does not have")
          .in(fmt::format("{}: {}", place, name))
          .expected("a token of the tokenizer")
          .found(printable(content))
          .fix("correct tokenizer_config.json or special_tokens_map.json");
  }
  if (added.empty()) return named;
  if (added.size() > 1)
    refuse_for_gguf("no GGUF file can say that several tokens are added at one end of a text", place,
                    "one token, or none", fmt::format("{}", added.size()));
  if (named && *named != added[0])
    refuse_for_gguf("the tokenizer adds another token than the one that its files name",
                    fmt::format("{}: {}", place, name), fmt::format("token {}", added[0]),
                    fmt::format("{}", *named));
  return added[0];
}

class KeysOf {
 public:
  KeysOf(const Tokenizer& tokenizer, const std::string& directory, TokenId rows)
      : tokenizer_(tokenizer),
        directory_(directory),
        rows_(rows),
        contents_(contents_of(tokenizer)),
        chat_(read_chat_sources(directory)) {}

  Keys take() {
    if (is_byte_level(contents_))
      add_bytes();
    else if (contents_.kind == TokenizerContents::Kind::kPieces)
      add_pieces();
    else
      refuse_for_gguf("no GGUF file can say what this tokenizer merges", directory_,
                      "BPE of bytes, or a tokenizer.model", "characters, or other pieces");
    add_ids();
    add_templates();
    return std::move(keys_);
  }

 private:
  void put(std::string_view name, store::GgufWritten value) {
    keys_.emplace_back(fmt::format("tokenizer.{}", name), std::move(value));
  }
  void put_id(std::string_view name, std::optional<TokenId> id) {
    if (id) put(fmt::format("ggml.{}_token_id", name), static_cast<std::uint32_t>(*id));
  }

  void add_bytes() {
    const GgufCut cut = gguf_cut_of(contents_, directory_);
    check_bytes();
    GgufTokenRows rows = gguf_rows_of_bpe(contents_, rows_, cut.nfc, directory_);
    put("ggml.model", std::string("gpt2"));
    put("ggml.pre", std::string(cut.name));
    put("ggml.tokens", std::move(rows.contents));
    put("ggml.token_type", std::move(rows.types));
    put("ggml.merges", gguf_merges_of(contents_, directory_));
  }
  // Readers of files know no unknown token here, which matters where a byte has no token.
  void check_bytes() const {
    if (!contents_.unknown) return;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      std::string token;
      append_byte_level(token, {&c, 1});
      if (!contents_.vocabulary.find(token))
        refuse_for_gguf("no GGUF file can say that a byte becomes the unknown token", directory_,
                        "a token for each byte", fmt::format("none for byte {}", byte));
    }
  }

  void add_pieces() {
    const SentencePieceModel& pieces = contents_.pieces;
    if (pieces.remove_extra_whitespaces || !pieces.escape_whitespaces)
      refuse_for_gguf("no GGUF file can say what the tokenizer does with blanks",
                      directory_ + ": normalizer_spec",
                      "remove_extra_whitespaces false and escape_whitespaces true",
                      fmt::format("{} and {}", pieces.remove_extra_whitespaces, pieces.escape_whitespaces));
    if (pieces.byte_ids.empty())
      refuse_for_gguf("no GGUF file can say what text without a piece becomes", directory_,
                      "the pieces <0x00> to <0xFF>", "none of them");
    GgufTokenRows rows = gguf_rows_of_pieces(contents_, rows_, directory_);
    put("ggml.model", std::string("llama"));
    put("ggml.pre", std::string("default"));
    put("ggml.tokens", std::move(rows.contents));
    put("ggml.scores", std::move(rows.scores));
    put("ggml.token_type", std::move(rows.types));
    put("ggml.add_space_prefix", pieces.add_dummy_prefix);
  }

  void add_ids() {
    const bool pieces = contents_.kind == TokenizerContents::Kind::kPieces;
    const auto id = [&](std::string_view name, const std::vector<TokenId>& added) {
      return id_of(tokenizer_, chat_, name, added, directory_);
    };
    // Pieces of these names are SentencePiece's own.
    const auto piece = [&](std::string_view content) {
      return pieces ? contents_.pieces.reserved.find(content) : std::nullopt;
    };
    const auto bos = id("bos_token", contents_.before), eos = id("eos_token", contents_.after);
    put_id("bos", bos ? bos : piece("<s>"));
    put_id("eos", eos ? eos : piece("</s>"));
    put_id("unknown", pieces ? std::optional(contents_.pieces.unknown) : id("unk_token", {}));
    put_id("padding", id("pad_token", {}));
    put("ggml.add_bos_token", !contents_.before.empty());
    put("ggml.add_eos_token", !contents_.after.empty());
  }

  void add_templates() {
    std::vector<std::string> names;
    for (const ChatSource& source : chat_.templates)
      if (source.name != "default") names.push_back(source.name);
    if (!names.empty()) put("chat_templates", names);
    for (const ChatSource& source : chat_.templates)
      put(source.name == "default" ? "chat_template" : "chat_template." + source.name, source.text);
  }

  const Tokenizer& tokenizer_;
  const std::string& directory_;
  const TokenId rows_;
  const TokenizerContents contents_;
  const ChatSources chat_;
  Keys keys_;
};

store::GgufValue as_read(const store::GgufWritten& written) {
  return std::visit(
      [](const auto& value) -> store::GgufValue {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::uint32_t>)
          return std::uint64_t{value};
        else if constexpr (std::is_same_v<Value, float>)
          return double{value};
        else if constexpr (std::is_same_v<Value, std::vector<std::int32_t>>)
          return std::vector<std::int64_t>(value.begin(), value.end());
        else if constexpr (std::is_same_v<Value, std::vector<float>>)
          return std::vector<double>(value.begin(), value.end());
        else
          return value;
      },
      written);
}

void check_ids_of(const Tokenizer& source, const Keys& keys, const std::string& directory, TokenId rows) {
  store::GgufHeader header;
  for (const auto& [name, value] : keys) header.keys.push_back({name, as_read(value)});
  const std::unique_ptr<Tokenizer> written = load_gguf_tokenizer(header, directory, rows);
  for (const std::string_view text : kTexts) {
    const std::vector<TokenId> ids = source.encode(text, AddSpecial::kYes);
    if (written->encode(text, AddSpecial::kYes) != ids ||
        written->decode(ids, ShowSpecial::kNo) != source.decode(ids, ShowSpecial::kNo))
      refuse_for_gguf("the tokenizer gives other ids where a GGUF file holds it", directory,
                      "the same ids for a text", printable(text));
  }
}

}  // namespace

Keys gguf_tokenizer_keys(const std::string& directory, TokenId rows) {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_for(directory, rows);
  const TokenizerContents contents = contents_of(*tokenizer);
  if (contents.kind == TokenizerContents::Kind::kBpe && !is_byte_level(contents))
    if (std::unique_ptr<Tokenizer> pieces = pieces_beside(directory, *tokenizer, rows))
      tokenizer = std::move(pieces);
  Keys keys = KeysOf(*tokenizer, directory, rows).take();
  check_ids_of(*tokenizer, keys, directory, rows);
  return keys;
}

}  // namespace sluice::tokenizer
