// A tokenizer.json taken apart while it is read: the two big fields, model.vocab and model.merges, go
// straight into compact form; the rest is a small JSON value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/tokenizer/vocabulary.h"

namespace sluice::model {

// Merge rules as text, in the order of the file.
class MergeList {
 public:
  void add_part(std::string_view part);  // left, right, left, right …
  std::size_t size() const { return ends_.size() / 2; }
  struct Rule {
    std::string_view left, right;
  };
  Rule operator[](std::size_t rule) const;

 private:
  std::string arena_;
  std::vector<std::uint32_t> ends_;  // end of each part in the arena
};

struct TokenizerDocument {
  Json rest;              // without model.vocab and model.merges
  Vocabulary vocabulary;  // model.vocab, if it is an object of ids
  MergeList merges;       // model.merges
  bool has_vocabulary = false;
  bool has_merges = false;
};

inline constexpr std::size_t kMaxTokenizerBytes = 64 << 20;

// Error(kInvalid) naming `name` and byte or entry: not JSON, too deep, duplicate keys, contents or ids, ids
// out of range, merges that are not two parts.
TokenizerDocument read_tokenizer_document(std::string_view text, const std::string& name);

// vocab.json: one object of ids.
Vocabulary read_vocabulary_json(std::string_view text, const std::string& name);

// merges.txt: "left right" a line; lines that begin with "#version" are comments.
MergeList read_merges_text(std::string_view text, const std::string& name);

}  // namespace sluice::model
