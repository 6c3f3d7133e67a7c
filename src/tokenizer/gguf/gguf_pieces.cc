#include "tokenizer/gguf/gguf_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";

// User-defined tokens are cut out of the text before, so for the model they are pieces as others.
PieceType piece_type(GgufTokenType type) {
  switch (type) {
    case GgufTokenType::kNormal:
    case GgufTokenType::kUserDefined:
      return PieceType::kNormal;
    case GgufTokenType::kUnknown:
    case GgufTokenType::kControl:
      return PieceType::kControl;
    case GgufTokenType::kUnused:
      return PieceType::kUnused;
    case GgufTokenType::kByte:
      return PieceType::kByte;
  }
  return PieceType::kUnused;
}

void add_byte(const GgufKeys& keys, std::string_view content, TokenId id, std::vector<TokenId>& bytes) {
  if (bytes.empty()) bytes.assign(256, -1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (content != fmt::format("<0x{:02X}>", byte)) continue;
    bytes[byte] = id;
    return;
  }
  keys.fail("byte that names no byte", keys.place(GgufTokens::kContents, static_cast<std::size_t>(id)),
            "<0x00> to <0xFF>", printable(content));
}

std::vector<float> read_scores(const GgufKeys& keys, std::size_t tokens) {
  const std::vector<double> scores = keys.numbers(kScores);
  if (scores.size() != tokens)
    keys.fail("not as many scores as tokens", keys.place(kScores), fmt::format("{}", tokens),
              keys.has(kScores) ? fmt::format("{}", scores.size()) : "no such key");
  std::vector<float> out;
  out.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    // Files may hold doubles; one that no float can hold would be undefined.
    if (!(std::abs(scores[i]) <= 3e38))
      keys.fail("score is no number", keys.place(kScores, i), "a finite number",
                fmt::format("{}", scores[i]));
    out.push_back(static_cast<float>(scores[i]));
  }
  return out;
}

}  // namespace

SentencePieceModel read_gguf_pieces(const GgufKeys& keys, const GgufModel& kind, const GgufTokens& tokens) {
  SentencePieceModel model;
  model.scores = read_scores(keys, static_cast<std::size_t>(tokens.size()));
  for (TokenId id = 0; id < tokens.size(); ++id) {
    const std::string place = keys.place(GgufTokens::kContents, static_cast<std::size_t>(id));
    // A row without a token has a name, because every piece has one; text never gives it.
    const bool empty = tokens.content(id).empty();
    const std::string content = empty ? fmt::format("[EMPTY_{}]", id) : tokens.content(id);
    const PieceType type = empty ? PieceType::kControl : piece_type(tokens.type(id));
    if (content.size() >= SentencePieceModel::kMaxPieceBytes)
      keys.fail("token is too long", place,
                fmt::format("less than {} bytes", SentencePieceModel::kMaxPieceBytes),
                fmt::format("{}", content.size()));
    const bool formed = type == PieceType::kNormal || type == PieceType::kUnused;
    Vocabulary& own = formed ? model.merged : model.reserved;
    const Vocabulary& other = formed ? model.reserved : model.merged;
    if (other.find(content) || own.add(content, id) != Vocabulary::Added::kYes)
      keys.fail("token is listed twice", place, "every content once", printable(content));
    if (type == PieceType::kByte) add_byte(keys, content, id, model.byte_ids);
    model.types.push_back(type);
  }
  const auto missing = std::ranges::find(model.byte_ids, -1);
  if (missing != model.byte_ids.end())
    keys.fail("bytes of which some are missing", keys.place(GgufTokens::kContents),
              "<0x00> to <0xFF>, or none", fmt::format("no <0x{:02X}>", missing - model.byte_ids.begin()));
  constexpr std::string_view kUnknown = "tokenizer.ggml.unknown_token_id";
  const auto unknown = tokens.id_at(kUnknown, kind.unknown);
  if (!unknown || !tokens.is_special(*unknown))
    keys.fail("no unknown token", keys.place(kUnknown), "the id of an unknown or a control token",
              unknown ? fmt::format("{}, a token of another type", *unknown) : "no such key");
  model.unknown = *unknown;
  model.add_dummy_prefix = keys.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  model.remove_extra_whitespaces = false;
  return model;
}

}  // namespace sluice::tokenizer
