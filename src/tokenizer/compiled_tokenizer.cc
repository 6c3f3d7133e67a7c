#include "tokenizer/compiled_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"

namespace sluice::tokenizer {
namespace {

struct VocabularyNames {
  std::string_view text, entries, slots;
};
constexpr VocabularyNames kTokens = {"text", "entries", "slots"},
                          kReserved = {"reserved-text", "reserved-entries", "reserved-slots"};
constexpr std::string_view kDescription = "description";

}  // namespace

std::vector<store::NamedTable> written_tables(const TokenizerTables& compiled, std::string& text) {
  text = compiled.description.dump();
  std::vector<store::NamedTable> tables = {store::named_table(kDescription, std::span<const char>(text))};
  tables.insert(tables.end(), compiled.tables.begin(), compiled.tables.end());
  return tables;
}

void add_vocabulary(const Vocabulary& vocabulary, bool reserved, TokenizerTables& out) {
  const VocabularyNames& names = reserved ? kReserved : kTokens;
  const std::string_view text = vocabulary.text();
  out.tables.push_back(store::named_table(names.text, std::span(text)));
  out.tables.push_back(store::named_table(names.entries, vocabulary.entries()));
  out.tables.push_back(store::named_table(names.slots, vocabulary.slots()));
}

Vocabulary read_vocabulary(const store::TableSidecar& tables, bool reserved) {
  const VocabularyNames& names = reserved ? kReserved : kTokens;
  return Vocabulary::of_tables(tables.read_text(names.text), tables.read<Vocabulary::Entry>(names.entries),
                               tables.read<TokenId>(names.slots), tables.name());
}

Json describe_added_tokens(const AddedTokens& added) {
  Json list = Json::array();
  for (const AddedToken& token : added.tokens())
    list.push_back({{"content", token.content},
                    {"id", token.id},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  return list;
}

AddedTokens read_described_tokens(const JsonObject& description) {
  AddedTokens added;
  const Json* const list = description.find("added");
  if (list == nullptr || !list->is_array()) description.fail("added", "an array");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const JsonObject object = element_object(*list, i, description.name() + ": added");
    AddedToken token = read_added_token(object);
    token.id = static_cast<TokenId>(object.integer("id", 0, Vocabulary::kMaxId));
    added.add(std::move(token));
  }
  return added;
}

Json describe_id(std::optional<TokenId> id) { return id && *id >= 0 ? Json(*id) : Json(nullptr); }

std::optional<TokenId> read_described_id(const JsonObject& description, std::string_view key,
                                         TokenId end_id) {
  if (!description.has(key)) return std::nullopt;
  return static_cast<TokenId>(description.integer(key, 0, end_id - 1));
}

std::unique_ptr<Tokenizer> load_compiled_tokenizer(const store::TableSidecar& tables) {
  const std::string name = fmt::format("{}: {}", tables.name(), kDescription);
  const Json json = parse_json(tables.read_text(kDescription), name);
  const JsonObject description(json, name);
  const std::string type = description.string("type");
  if (type == "BPE" || type == "Unigram") return load_compiled_pipeline(description, tables);
  if (type == "SentencePiece") return load_compiled_sentencepiece(description, tables);
  description.fail("type", "BPE, Unigram or SentencePiece");
}

}  // namespace sluice::tokenizer
