#include "tokenizer/export/tokenizer_contents.h"

#include <algorithm>
#include <span>

#include "store/sidecar/table_sidecar.h"
#include "tokenizer/compiled_tokenizer.h"

namespace sluice::tokenizer {
namespace {

std::vector<TokenId> ids_in(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_array()) return value.get<std::vector<TokenId>>();
  return {value.get<TokenId>()};
}

SentencePieceModel pieces_of(const Json& description, const store::TableSidecar& tables) {
  SentencePieceModel model;
  model.merged = read_vocabulary(tables, false);
  model.reserved = read_vocabulary(tables, true);
  model.scores = tables.read<float>("scores");
  model.types = tables.read<PieceType>("types");
  model.byte_ids = tables.read<TokenId>("bytes");
  model.unknown = description.at("unknown").get<TokenId>();
  model.add_dummy_prefix = description.at("add_dummy_prefix").get<bool>();
  model.remove_extra_whitespaces = description.at("remove_extra_whitespaces").get<bool>();
  model.escape_whitespaces = description.at("escape_whitespaces").get<bool>();
  return model;
}

}  // namespace

TokenizerContents contents_of(const Tokenizer& tokenizer) {
  const TokenizerTables compiled = tokenizer.compile();
  std::string text;
  const std::string file = store::write_tables(kTokenizerTables, 0, written_tables(compiled, text));
  const auto tables = store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "tokenizer");
  const Json& description = compiled.description;
  TokenizerContents contents;
  const AddedTokens added = read_described_tokens(JsonObject(description, "tokenizer"));
  contents.added.assign(added.tokens().begin(), added.tokens().end());
  contents.before = ids_in(description.at("before"));
  contents.after = ids_in(description.at("after"));
  const std::string type = description.at("type").get<std::string>();
  if (type == "SentencePiece") {
    contents.kind = TokenizerContents::Kind::kPieces;
    contents.pieces = pieces_of(description, tables);
    return contents;
  }
  contents.components = description.at("components");
  contents.vocabulary = read_vocabulary(tables, false);
  if (type == "Unigram") {
    contents.kind = TokenizerContents::Kind::kUnigram;
    return contents;
  }
  contents.merges = tables.read<Merges::Slot>("merges");
  std::erase_if(contents.merges,
                [free = Merges::Slot().key](const Merges::Slot& slot) { return slot.key == free; });
  std::ranges::sort(contents.merges, {}, [](const Merges::Slot& slot) { return slot.merge.rank; });
  if (const Json& unknown = description.at("unknown"); !unknown.is_null())
    contents.unknown = unknown.get<TokenId>();
  contents.ignore_merges = description.at("ignore_merges").get<bool>();
  return contents;
}

}  // namespace sluice::tokenizer
