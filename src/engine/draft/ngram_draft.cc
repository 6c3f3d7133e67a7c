#include "engine/draft/ngram_draft.h"

#include <algorithm>

namespace sluice::engine {

Draft ngram_draft(std::span<const tokenizer::TokenId> text, std::size_t most) {
  Draft draft;
  most = std::min(most, kMostDrafts);
  if (text.size() > kDraftReach) text = text.last(kDraftReach);
  if (most == 0 || text.size() <= kShortestMatch) return draft;
  const tokenizer::TokenId last = text.back(), before_last = text[text.size() - 2];
  std::size_t best_end = 0;  // behind the earlier occurrence
  for (std::size_t end = text.size() - 1; end >= kShortestMatch && draft.match < kLongestMatch; --end) {
    if (text[end - 1] != last || text[end - 2] != before_last) continue;
    std::size_t match = kShortestMatch;
    while (match < kLongestMatch && match < end && text[end - 1 - match] == text[text.size() - 1 - match])
      ++match;
    if (match <= draft.match) continue;
    draft.match = match;
    best_end = end;
  }
  if (draft.match == 0) return draft;
  for (; draft.count < most; ++draft.count) {
    const std::size_t from = best_end + draft.count;
    draft.ids[draft.count] = from < text.size() ? text[from] : draft.ids[from - text.size()];
  }
  return draft;
}

}  // namespace sluice::engine
