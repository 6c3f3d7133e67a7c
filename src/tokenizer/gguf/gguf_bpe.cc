#include "tokenizer/gguf/gguf_bpe.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_builder.h"
#include "tokenizer/text/printable.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";
// In a file without rules each place within each token may be the seam of a rule.
constexpr std::size_t kMostJoinedBytes = 1024, kMostSeams = 1 << 22;

Vocabulary read_vocabulary(const GgufKeys& keys, const GgufTokens& tokens) {
  Vocabulary vocabulary;
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens.type(id) == GgufTokenType::kUnused) continue;
    if (vocabulary.add(tokens.content(id), id) != Vocabulary::Added::kYes)
      keys.fail("token is listed twice", keys.place(GgufTokens::kContents, static_cast<std::size_t>(id)),
                "every content once", printable(tokens.content(id)));
  }
  vocabulary.shrink_to_fit();
  return vocabulary;
}

MergeList read_merges(const GgufKeys& keys, const std::vector<std::string>& rules) {
  MergeList merges;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string_view rule = rules[i];
    const std::size_t space = rule.find(' ', 1);  // the first character may itself be a blank
    if (space == std::string_view::npos || space + 1 == rule.size())
      keys.fail("not a merge rule", keys.place(kMerges, i), "two tokens with a space between them",
                printable(rule));
    merges.add_part(rule.substr(0, space));
    merges.add_part(rule.substr(space + 1));
  }
  return merges;
}

Merges merges_by_id(const GgufKeys& keys, const GgufTokens& tokens, const Vocabulary& vocabulary,
                    const StopRequest& stop) {
  Merges merges;
  std::size_t seams = 0;
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens.type(id) != GgufTokenType::kNormal) continue;
    const std::string_view whole = tokens.content(id);
    seams += whole.size();
    if (whole.size() > kMostJoinedBytes || seams > kMostSeams)
      keys.fail("tokens are too long for a file without merges",
                keys.place(GgufTokens::kContents, static_cast<std::size_t>(id)),
                fmt::format("at most {} bytes each and {} together", kMostJoinedBytes, kMostSeams),
                fmt::format("{} and {}", whole.size(), seams));
    stop_if(stop);
    for (std::size_t at = decode_valid_utf8(whole).length; at < whole.size();
         at += decode_valid_utf8(whole.substr(at)).length) {
      const auto left = vocabulary.find(whole.substr(0, at)), right = vocabulary.find(whole.substr(at));
      if (left && right) merges.put(*left, *right, {static_cast<std::uint32_t>(id), id});
    }
  }
  return merges;
}

}  // namespace

std::unique_ptr<Bpe> read_gguf_bpe(const GgufKeys& keys, const GgufTokens& tokens, BpeOptions options,
                                   bool ids_are_ranks, const StopRequest& stop) {
  Vocabulary vocabulary = read_vocabulary(keys, tokens);
  const std::vector<std::string>* const rules = keys.strings(kMerges);
  if (rules == nullptr && ids_are_ranks) {
    Merges merges = merges_by_id(keys, tokens, vocabulary, stop);
    return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), options);
  }
  if (rules == nullptr)
    keys.fail("tokenizer without rules", keys.place(kMerges), "an array of strings", "no such key");
  try {
    return build_bpe(std::move(vocabulary), read_merges(keys, *rules), options, keys.place(kMerges), stop);
  } catch (Error& error) {
    if (error.kind() != ErrorKind::kInvalid) throw;
    throw std::move(error.fix(kDownloadAgain));
  }
}

}  // namespace sluice::tokenizer
