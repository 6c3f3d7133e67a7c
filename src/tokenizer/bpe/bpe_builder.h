// Builds a BPE model from its parts as files give them.
#pragma once

#include <memory>
#include <string>

#include "base/stop_request.h"
#include "tokenizer/bpe/bpe.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/vocabulary/merge_list.h"

namespace sluice::tokenizer {

// `where` names the merges in errors. Error(kInvalid) naming the rule if one of its parts, or the joined
// token, is not in the vocabulary.
std::unique_ptr<Bpe> build_bpe(Vocabulary vocabulary, const MergeList& merges, BpeOptions options,
                               const std::string& where, const StopRequest& stop = {});

// Gives `token` an id and adds it. A token that the model or `added` knows keeps its id; a new one gets the
// next free id. `declared` is the id that the file states, or -1: Error(kInvalid) in `where` if tokenizers
// would give another id.
void add_token(AddedToken token, TokenId declared, const Vocabulary& vocabulary, AddedTokens& added,
               const std::string& where);

}  // namespace sluice::tokenizer
