// A tokenizer in flat tables that the program uses directly as read (docs/store-format.md, section 5.2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "store/sidecar/table_sidecar.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

inline constexpr store::TableKind kTokenizerTables{"tokenizer", 1};

// The result of Tokenizer::compile(); the tables are views into the tokenizer.
struct TokenizerTables {
  Json description;  // everything except the tables
  std::vector<store::NamedTable> tables;
};
// The tables in the form for writing: the description, whose text is put into `text`, and the others.
std::vector<store::NamedTable> written_tables(const TokenizerTables& compiled, std::string& text);

// Rebuilds the tokenizer. Error(kCorrupt) or (kInvalid) naming the file for tables that do not fit together,
// Error(kUnsupported) for an unknown component.
std::unique_ptr<Tokenizer> load_compiled_tokenizer(const store::TableSidecar& tables);

// Shared by the kinds of tokenizers: reading and writing their tables and parts of their description.
void add_vocabulary(const Vocabulary& vocabulary, bool reserved, TokenizerTables& out);
Vocabulary read_vocabulary(const store::TableSidecar& tables, bool reserved);
Json describe_added_tokens(const AddedTokens& added);
AddedTokens read_described_tokens(const JsonObject& description);
Json describe_id(std::optional<TokenId> id);  // null: no id
std::optional<TokenId> read_described_id(const JsonObject& description, std::string_view key, TokenId end_id);

}  // namespace sluice::tokenizer
