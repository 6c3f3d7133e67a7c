// A BPE model from its parts as files give them.
#pragma once

#include <memory>
#include <string>

#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/merge_list.h"

namespace sluice::model {

// `where` names the merges in errors. Error(kInvalid) naming the rule for a part, or a joined token, that is
// not in the vocabulary.
std::unique_ptr<Bpe> build_bpe(Vocabulary vocabulary, const MergeList& merges, BpeOptions options,
                               const std::string& where);

// Gives `token` an id and adds it. One that the model or `added` knows keeps that id; another gets the next
// free one. `declared` is the id the file states, or -1: Error(kInvalid) in `where` if it is not the one
// tokenizers would give.
void add_token(AddedToken token, TokenId declared, const Vocabulary& vocabulary, AddedTokens& added,
               const std::string& where);

}  // namespace sluice::model
