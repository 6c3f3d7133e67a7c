// A mark of a chat's format as a grammar reads it: bytes, and the special tokens among them.
#pragma once

#include <string_view>

#include "engine/grammar/grammar_builder.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

// As tokenizer/chat/calls/marks.h cuts it: the longest special token at each place.
GrammarMark mark_of_text(std::string_view text, const tokenizer::Tokenizer& tokenizer);

}  // namespace sluice::engine
