// A tokenizer.json taken apart while it is read: the two big fields, model.vocab and model.merges, go
// straight into compact form; the rest is a small JSON value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/stop_request.h"
#include "tokenizer/vocabulary/merge_list.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

struct TokenizerDocument {
  Json rest;              // without model.vocab and model.merges
  Vocabulary vocabulary;  // model.vocab: an object of ids, or an array of [token, score] in the order of ids
  std::vector<double> scores;  // scores of such an array, by id
  MergeList merges;            // model.merges
  bool has_vocabulary = false;
  bool has_scores = false;
  bool has_merges = false;
};

inline constexpr std::size_t kMaxTokenizerBytes = 64 << 20;

// Error(kInvalid) naming `name` and byte or entry: not JSON, too deep, duplicate keys, contents or ids, ids
// out of range, merges that are not two parts.
TokenizerDocument read_tokenizer_document(std::string_view text, const std::string& name,
                                          const StopRequest& stop = {});

// vocab.json: one object of ids.
Vocabulary read_vocabulary_json(std::string_view text, const std::string& name, const StopRequest& stop = {});

}  // namespace sluice::tokenizer
