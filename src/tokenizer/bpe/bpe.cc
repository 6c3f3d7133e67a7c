#include "tokenizer/bpe/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {

Bpe::Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(options) {
  for (std::size_t c = 0; c < id_of_character_.size(); ++c) {
    std::string text;
    append_utf8(text, static_cast<char32_t>(c));
    id_of_character_[c] = vocabulary_.find(text).value_or(-1);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    id_of_byte_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  if (options_.ignore_merges) {
    if (const auto id = vocabulary_.find(piece)) {
      out.push_back(*id);
      return;
    }
  }
  add_symbols(piece, scratch);
  merge(scratch);
  for (const Scratch::Symbol& symbol : scratch.symbols_) {
    if (symbol.alive) out.push_back(symbol.id);
  }
}

void Bpe::add_symbols(std::string_view piece, Scratch& scratch) const {
  auto& symbols = scratch.symbols_;
  symbols.clear();
  const auto add = [&symbols](TokenId id) {
    const auto here = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({id, here - 1, here + 1, true});
  };
  // tokenizers emits an unknown token only before the next known token, or at the end.
  bool unknown_pending = false;
  while (!piece.empty()) {
    const CodePoint c = decode_valid_utf8(piece);
    const std::string_view character = piece.substr(0, c.length);
    piece.remove_prefix(c.length);
    const TokenId id = c.value < id_of_character_.size() ? id_of_character_[c.value]
                                                         : vocabulary_.find(character).value_or(-1);
    if (id >= 0) {
      if (unknown_pending) add(*options_.unknown);
      unknown_pending = false;
      add(id);
      continue;
    }
    const auto id_of_byte = [this](char byte) { return id_of_byte_[static_cast<unsigned char>(byte)]; };
    if (options_.byte_fallback &&
        std::all_of(character.begin(), character.end(), [&](char byte) { return id_of_byte(byte) >= 0; })) {
      for (const char byte : character) add(id_of_byte(byte));
      continue;
    }
    if (!options_.unknown) continue;
    if (unknown_pending && !options_.fuse_unknown) add(*options_.unknown);
    unknown_pending = true;
  }
  if (unknown_pending) add(*options_.unknown);
  SLUICE_CHECK(symbols.size() <= INT32_MAX);
  if (!symbols.empty()) symbols.back().next = -1;
}

void Bpe::propose(Scratch& scratch, std::int32_t left, std::int32_t right) const {
  const auto& symbols = scratch.symbols_;
  const Merge* merge =
      merges_.find(symbols[static_cast<std::size_t>(left)].id, symbols[static_cast<std::size_t>(right)].id);
  if (merge == nullptr) return;
  scratch.heap_.push_back(
      {(static_cast<std::uint64_t>(merge->rank) << 32) | static_cast<std::uint32_t>(left), merge->id});
}

// The candidates of tokenizers' Word::merge_all, in its order. A candidate whose pair has changed meanwhile
// is dropped by comparing the joined token, not the rank: two rules for one token must behave as in
// tokenizers.
void Bpe::merge(Scratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& heap = scratch.heap_;
  heap.clear();
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.order > b.order;
  };
  for (std::size_t i = 1; i < symbols.size(); ++i) {
    propose(scratch, static_cast<std::int32_t>(i - 1), static_cast<std::int32_t>(i));
  }
  std::make_heap(heap.begin(), heap.end(), later);
  const auto propose_and_sift = [&](std::int32_t left, std::int32_t right) {
    const std::size_t before = heap.size();
    propose(scratch, left, right);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    const Scratch::Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const auto here = static_cast<std::int32_t>(top.position());
    Scratch::Symbol& symbol = symbols[static_cast<std::size_t>(here)];
    if (!symbol.alive || symbol.next < 0) continue;
    Scratch::Symbol& right = symbols[static_cast<std::size_t>(symbol.next)];
    const Merge* merge = merges_.find(symbol.id, right.id);
    if (merge == nullptr || merge->id != top.id) continue;
    symbol.id = top.id;
    symbol.next = right.next;
    right.alive = false;
    if (symbol.next >= 0) symbols[static_cast<std::size_t>(symbol.next)].previous = here;
    if (symbol.previous >= 0) propose_and_sift(symbol.previous, here);
    if (symbol.next >= 0) propose_and_sift(here, symbol.next);
  }
}

}  // namespace sluice::tokenizer
