// Which tokens of a vocabulary may come next, by where an answer stands in its grammar. Masks that were
// made are kept for all answers, as far as memory allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/grammar_machine.h"
#include "engine/grammar/token_trie.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

// A bit for each id, 64 in a word.
using TokenBits = std::vector<std::uint64_t>;
inline bool has_bit(std::span<const std::uint64_t> bits, std::size_t id) {
  return id / 64 < bits.size() && (bits[id / 64] >> (id % 64) & 1) != 0;
}
inline void put_bit(std::span<std::uint64_t> bits, std::size_t id, bool value) {
  if (id / 64 >= bits.size()) return;
  const std::uint64_t one = std::uint64_t{1} << (id % 64);
  bits[id / 64] = value ? bits[id / 64] | one : bits[id / 64] & ~one;
}

struct MaskCounts {
  std::uint64_t hits = 0, misses = 0;
};

// Thread-compatible.
class GrammarMasks {
 public:
  // `most`: bytes of memory that the tree of the vocabulary and the masks may take; a mask that
  // somebody needs is made even beyond that. The tokenizer must outlive this.
  GrammarMasks(const tokenizer::Tokenizer& tokenizer, std::size_t most);
  GrammarMasks(TokenTrie trie, std::vector<std::string> bytes_of,
               std::size_t most);  // `bytes_of`: of each id

  const TokenTrie& trie() const { return trie_; }
  // The bytes that a token adds to an answer.
  std::string bytes_of(tokenizer::TokenId id) const;
  bool is_special(tokenizer::TokenId id) const;
  // The mask has special tokens, too, but does not look at those that end an answer. It is valid as long
  // as it is held.
  std::shared_ptr<const TokenBits> mask(const Grammar& grammar, const GrammarPlace& place);
  // Room for one mask, whose content nobody keeps.
  TokenBits& scratch() { return scratch_; }
  const MaskCounts& counts() const { return counts_; }
  // The seconds that each mask took since the last call.
  std::vector<double> take_times() { return std::exchange(times_, {}); }
  std::size_t held_bytes() const { return held_bytes_ + trie_.bytes(); }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const TokenBits> mask;
  };
  TokenBits make(GrammarMachine& machine, GrammarMachine::Set set) const;
  std::size_t bytes_of_entry(const Entry& entry) const;
  void make_room(std::size_t bytes);

  const TokenTrie trie_;
  const tokenizer::Tokenizer* tokenizer_ = nullptr;
  const std::vector<std::string> bytes_of_;  // without a tokenizer
  const std::size_t most_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  std::size_t held_bytes_ = 0;
  TokenBits scratch_;
  MaskCounts counts_;
  std::vector<double> times_;  // at most kMostTimes
};

}  // namespace sluice::engine
