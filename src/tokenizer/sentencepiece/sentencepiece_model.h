// A SentencePiece model file (tokenizer.model): ModelProto of google/sentencepiece,
// src/sentencepiece_model.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

inline constexpr std::string_view kWordBegin = "\xE2\x96\x81";  // U+2581, which stands for a blank

enum class PieceType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct SentencePieceModel {
  static constexpr std::size_t kMaxPieceBytes = 8000;  // sentencepiece's own limit
  Vocabulary merged;              // normal, user-defined and unused pieces: merging may form them
  Vocabulary reserved;            // unknown, control and byte pieces: never formed from text
  std::vector<float> scores;      // by id; never NaN
  std::vector<PieceType> types;   // by id
  std::vector<TokenId> byte_ids;  // 256, or empty without byte_fallback
  TokenId unknown = -1;
  TokenId bos = -1, eos = -1;  // -1: no such token
  // The text of an unknown id: U+2047 between spaces.
  std::string unknown_surface = " \xE2\x81\x87 ";
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  std::string_view content(TokenId id) const {
    const auto piece = merged.content(id);
    return piece ? *piece : *reserved.content(id);
  }
  TokenId size() const { return static_cast<TokenId>(types.size()); }
};

// `data` is the content of the file; `name` names it in errors. Error(kInvalid) with the byte for broken
// files; Error(kUnsupported) for model types other than BPE, character maps, and white space as a suffix.
SentencePieceModel read_sentencepiece_model(std::string_view data, const std::string& name);

}  // namespace sluice::tokenizer
