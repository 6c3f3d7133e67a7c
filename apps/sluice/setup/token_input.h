// Token ids that a user gives: as numbers, or as the text of a file.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"
#include "flags/common_flags.h"
#include "tokenizer/tokenizer.h"

namespace sluice::app {

// Token ids of a text from `file`. Error(kInvalid) naming file and byte for a text that is not UTF-8;
// Error(kBudget) for a text too large to be tokenized inside the budget.
std::vector<tokenizer::TokenId> encode_file(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                            const std::string& file, tokenizer::AddSpecial add_special,
                                            const CommonFlags& flags);

// Parses "1,2,3". Error(kUsage) naming `flag`, and the entry with its place in the list.
std::vector<tokenizer::TokenId> parse_token_list(const std::string& text, Setting setting);

}  // namespace sluice::app
