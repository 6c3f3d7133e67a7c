#include "tokenizer/sentencepiece/sentencepiece_model.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/error.h"
#include "tokenizer/sentencepiece/protobuf.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::uint64_t kBpe = 2;  // TrainerSpec.ModelType

struct Piece {
  std::string_view content;
  float score = 0.0f;
  PieceType type = PieceType::kNormal;
};

class Reader {
 public:
  Reader(std::string_view data, const std::string& name) : data_(data), name_(name) {}

  SentencePieceModel read() {
    ProtobufReader fields(data_, name_, 0);
    while (fields.next()) {
      switch (fields.field()) {
        case 1:
          add_piece(fields.message());
          break;
        case 2:
          read_trainer(fields.message());
          break;
        case 3:
          read_normalizer(fields.message());
          break;
        default:
          fields.skip();
      }
    }
    check();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::uint64_t offset) const {
    throw Error(ErrorKind::kInvalid, what).in(name_, offset).fix("download the tokenizer files again");
  }
  [[noreturn]] void unsupported(std::string_view what, std::string_view expected,
                                std::string_view found) const {
    throw Error(ErrorKind::kUnsupported, what)
        .in(name_)
        .expected(expected)
        .found(found)
        .fix(tokens_instead_of_text());
  }

  void add_piece(ProtobufReader fields) {
    const std::uint64_t offset = fields.offset();
    Piece piece;
    while (fields.next()) {
      switch (fields.field()) {
        case 1:
          piece.content = fields.bytes();
          break;
        case 2:
          piece.score = fields.fixed32_float();
          break;
        case 3: {
          const std::uint64_t type = fields.varint();
          if (type < 1 || type > 6) fail("piece of an unknown type", offset);
          piece.type = static_cast<PieceType>(type);
          break;
        }
        default:
          fields.skip();
      }
    }
    const TokenId id = model_.size();
    if (id > Vocabulary::kMaxId) fail("too many pieces", offset);
    if (piece.content.empty() || piece.content.size() >= SentencePieceModel::kMaxPieceBytes)
      fail("piece is empty or too long", offset);
    if (find_invalid_utf8(piece.content) || piece.content.find('\0') != std::string_view::npos) {
      fail("piece is not UTF-8 text", offset);
    }
    if (std::isnan(piece.score)) fail("score of a piece is not a number", offset);
    const bool formed = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined ||
                        piece.type == PieceType::kUnused;
    Vocabulary& vocabulary = formed ? model_.merged : model_.reserved;
    if (vocabulary.add(piece.content, id) != Vocabulary::Added::kYes) fail("piece is there twice", offset);
    if (piece.type == PieceType::kUnknown) {
      if (model_.unknown >= 0) fail("two unknown pieces", offset);
      model_.unknown = id;
    }
    if (piece.type == PieceType::kByte) add_byte(piece.content, id, offset);
    model_.scores.push_back(piece.score);
    model_.types.push_back(piece.type);
  }

  void add_byte(std::string_view content, TokenId id, std::uint64_t offset) {
    if (model_.byte_ids.empty()) model_.byte_ids.assign(256, -1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (content == fmt::format("<0x{:02X}>", byte)) {
        model_.byte_ids[byte] = id;
        return;
      }
    }
    fail("byte piece that names no byte", offset);
  }

  void read_trainer(ProtobufReader fields) {
    while (fields.next()) {
      switch (fields.field()) {
        case 3:
          model_type_ = fields.varint();
          break;
        case 24:
          if (fields.boolean())
            unsupported("white space as a suffix of words is not supported", "as a prefix", "a suffix");
          break;
        case 35:
          byte_fallback_ = fields.boolean();
          break;
        case 41:
          bos_id_ = as_id(fields.varint());
          break;
        case 42:
          eos_id_ = as_id(fields.varint());
          break;
        case 44:
          model_.unknown_surface = fields.bytes();
          break;
        default:
          fields.skip();
      }
    }
  }

  // A negative id means none.
  static std::int64_t as_id(std::uint64_t value) { return static_cast<std::int64_t>(value); }

  void read_normalizer(ProtobufReader fields) {
    while (fields.next()) {
      switch (fields.field()) {
        case 2:
          if (!fields.bytes().empty())
            unsupported("character map of the normalizer is not supported", "none", "a map");
          break;
        case 3:
          model_.add_dummy_prefix = fields.boolean();
          break;
        case 4:
          model_.remove_extra_whitespaces = fields.boolean();
          break;
        case 5:
          model_.escape_whitespaces = fields.boolean();
          break;
        default:
          fields.skip();
      }
    }
  }

  void check() {
    if (model_.size() == 0) {
      throw Error(ErrorKind::kInvalid, "not a SentencePiece model")
          .in(name_)
          .expected("a list of pieces")
          .found("none")
          .fix("download the tokenizer files again");
    }
    if (model_type_ != kBpe) {
      unsupported("SentencePiece model of a type that is not supported", "BPE (2)",
                  fmt::format("{}", model_type_));
    }
    if (model_.unknown < 0) fail("no unknown piece", data_.size());
    if (byte_fallback_) {
      if (model_.byte_ids.empty()) fail("byte_fallback without byte pieces", data_.size());
      for (const TokenId id : model_.byte_ids) {
        if (id < 0) fail("byte_fallback without all 256 byte pieces", data_.size());
      }
    } else if (!model_.byte_ids.empty()) {
      fail("byte pieces without byte_fallback", data_.size());
    }
    if (find_invalid_utf8(model_.unknown_surface))
      fail("text of the unknown piece is not UTF-8", data_.size());
    // sentencepiece gives these ids only to control pieces.
    const auto control = [this](std::int64_t id) -> TokenId {
      if (id < 0 || id >= model_.size()) return -1;
      return model_.types[static_cast<std::size_t>(id)] == PieceType::kControl ? static_cast<TokenId>(id)
                                                                               : -1;
    };
    model_.bos = control(bos_id_);
    model_.eos = control(eos_id_);
  }

  std::string_view data_;
  const std::string& name_;
  SentencePieceModel model_;
  std::uint64_t model_type_ = 1;  // UNIGRAM is the default of the format
  bool byte_fallback_ = false;
  std::int64_t bos_id_ = 1, eos_id_ = 2;
};

}  // namespace

SentencePieceModel read_sentencepiece_model(std::string_view data, const std::string& name) {
  return Reader(data, name).read();
}

}  // namespace sluice::tokenizer
