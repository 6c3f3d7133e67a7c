#include "tokenizer/sentencepiece/score_bpe.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// Whether U+2581 follows another character somewhere in `piece`.
bool has_inner_space(std::string_view piece) {
  while (piece.starts_with(kWordBegin)) piece.remove_prefix(kWordBegin.size());
  return piece.find(kWordBegin) != std::string_view::npos;
}

}  // namespace

ScoreBpe::ScoreBpe(const SentencePieceModel& model) : model_(model), cut_before_space_(true) {
  for (TokenId id = 0; id < model.size(); ++id) {
    const auto piece = model.merged.content(id);
    if (!piece) continue;
    if (model.types[static_cast<std::size_t>(id)] == PieceType::kUserDefined) {
      user_defined_.add(*piece, static_cast<std::uint32_t>(id));
    }
    if (has_inner_space(*piece) || is_unused(id)) cut_before_space_ = false;
  }
}

std::size_t ScoreBpe::user_defined_prefix(std::string_view text) const {
  if (user_defined_.empty()) return 0;
  const auto found = user_defined_.longest_prefix(text);
  return found ? found->length : 0;
}

void ScoreBpe::encode(std::string_view text, std::vector<TokenId>& out) const {
  Scratch scratch;
  bool unknown_before = false;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (cut_before_space_) {
      std::size_t at = 0;
      while (text.substr(at).starts_with(kWordBegin)) at += kWordBegin.size();
      end = std::min(text.find(kWordBegin, at), text.size());
    }
    encode_segment(text.substr(0, end), scratch, unknown_before, out);
    text.remove_prefix(end);
  }
}

void ScoreBpe::encode_segment(std::string_view segment, Scratch& scratch, bool& unknown_before,
                              std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  for (std::size_t at = 0; at < segment.size();) {
    const std::size_t user_defined = user_defined_prefix(segment.substr(at));
    const std::size_t length = user_defined > 0 ? user_defined : decode_valid_utf8(segment.substr(at)).length;
    const auto here = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), here - 1, here + 1,
                       user_defined > 0});
    at += length;
  }
  symbols.back().next = -1;

  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  };
  for (std::size_t i = 1; i < symbols.size(); ++i) {
    propose(segment, static_cast<std::int32_t>(i - 1), static_cast<std::int32_t>(i), scratch);
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  while (!heap.empty()) {
    const Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), worse);
    heap.pop_back();
    Symbol& left = symbols[static_cast<std::size_t>(top.left)];
    Symbol& right = symbols[static_cast<std::size_t>(top.right)];
    if (left.length == 0 || right.length == 0 || left.length + right.length != top.length) continue;
    left.length = top.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = top.left;
    if (propose(segment, left.previous, top.left, scratch)) std::push_heap(heap.begin(), heap.end(), worse);
    if (propose(segment, top.left, left.next, scratch)) std::push_heap(heap.begin(), heap.end(), worse);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.length > 0) give(segment.substr(symbol.begin, symbol.length), scratch, unknown_before, out);
  }
}

bool ScoreBpe::propose(std::string_view segment, std::int32_t left, std::int32_t right,
                       Scratch& scratch) const {
  if (left < 0 || right < 0) return false;
  const Symbol& a = scratch.symbols[static_cast<std::size_t>(left)];
  const Symbol& b = scratch.symbols[static_cast<std::size_t>(right)];
  if (a.frozen || b.frozen) return false;
  const std::string_view piece = segment.substr(a.begin, a.length + b.length);
  const auto id = model_.merged.find(piece);
  if (!id) return false;
  if (is_unused(*id)) scratch.left_of_unused[piece] = a.length;
  scratch.heap.push_back({model_.scores[static_cast<std::size_t>(*id)], left, right, a.length + b.length});
  return true;
}

void ScoreBpe::give(std::string_view piece, const Scratch& scratch, bool& unknown_before,
                    std::vector<TokenId>& out) const {
  // Reserved pieces come first, as in sentencepiece's PieceToId: a single character may be a control piece.
  auto id = model_.reserved.find(piece);
  if (!id) id = model_.merged.find(piece);
  // Such a piece may be formed on the way to others, but it is taken apart again in the end.
  if (id && is_unused(*id)) {
    const auto split = scratch.left_of_unused.find(piece);
    if (split != scratch.left_of_unused.end()) {
      give(piece.substr(0, split->second), scratch, unknown_before, out);
      give(piece.substr(split->second), scratch, unknown_before, out);
      return;
    }
  }
  const bool unknown = !id || *id == model_.unknown;
  if (!unknown) {
    out.push_back(*id);
  } else if (!model_.byte_ids.empty()) {
    for (const char byte : piece) out.push_back(model_.byte_ids[static_cast<unsigned char>(byte)]);
  } else if (!unknown_before) {
    out.push_back(model_.unknown);
  }
  unknown_before = unknown;
}

}  // namespace sluice::tokenizer
