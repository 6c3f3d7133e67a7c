#include "engine/grammar/grammar_masks.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::size_t kEntryBytes = 256;  // bytes of lists and maps, about
constexpr std::size_t kMostTimes = 1024;  // that wait for somebody to take them

std::string mask_key(const Grammar& grammar, const GrammarPlace& place) {
  const std::uint64_t id = grammar.id();
  std::string key(sizeof(id) + place.words.size() * sizeof(std::uint32_t), '\0');
  std::copy_n(reinterpret_cast<const char*>(&id), sizeof(id), key.begin());
  std::copy_n(reinterpret_cast<const char*>(place.words.data()), place.words.size() * sizeof(std::uint32_t),
              key.begin() + sizeof(id));
  return key;
}

}  // namespace

GrammarMasks::GrammarMasks(const tokenizer::Tokenizer& tokenizer, std::size_t most)
    : trie_(tokenizer), tokenizer_(&tokenizer), most_(most) {}

GrammarMasks::GrammarMasks(TokenTrie trie, std::vector<std::string> bytes_of, std::size_t most)
    : trie_(std::move(trie)), bytes_of_(std::move(bytes_of)), most_(most) {}

std::string GrammarMasks::bytes_of(tokenizer::TokenId id) const {
  return tokenizer_ != nullptr ? tokenizer_->bytes_of(id) : bytes_of_.at(static_cast<std::size_t>(id));
}

bool GrammarMasks::is_special(tokenizer::TokenId id) const {
  return std::ranges::binary_search(trie_.specials(), id);
}

std::size_t GrammarMasks::bytes_of_entry(const Entry& entry) const {
  return entry.key.capacity() + entry.mask->capacity() * sizeof(std::uint64_t) + kEntryBytes;
}

void GrammarMasks::make_room(std::size_t bytes) {
  while (!entries_.empty() && held_bytes() + bytes > most_) {
    held_bytes_ -= bytes_of_entry(entries_.back());
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::shared_ptr<const TokenBits> GrammarMasks::mask(const Grammar& grammar, const GrammarPlace& place) {
  GrammarMachine machine(grammar);
  const auto longest = static_cast<std::uint32_t>(trie_.depth());
  const GrammarPlace alike = machine.save_alike(machine.load(place), longest);
  std::string key = mask_key(grammar, alike);
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    ++counts_.hits;
    entries_.splice(entries_.begin(), entries_, known->second);
    return known->second->mask;
  }
  ++counts_.misses;
  const auto begin = std::chrono::steady_clock::now();
  Entry entry{std::move(key), std::make_shared<const TokenBits>(make(machine, machine.load(alike)))};
  if (times_.size() < kMostTimes)
    times_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  const std::size_t bytes = bytes_of_entry(entry);
  std::shared_ptr<const TokenBits> mask = entry.mask;
  make_room(bytes);
  if (held_bytes() + bytes > most_) return mask;
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
  held_bytes_ += bytes;
  return mask;
}

TokenBits GrammarMasks::make(GrammarMachine& machine, GrammarMachine::Set set) const {
  TokenBits bits((trie_.vocabulary() + 63) / 64);
  const std::span<const TokenTrie::Node> nodes = trie_.nodes();
  std::vector<GrammarMachine::Set> above(trie_.depth() + 1);  // sets before a node of each depth
  above[0] = set;
  for (std::size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const GrammarMachine::Set next = machine.step(above[node.depth], node.byte);
    if (next == GrammarMachine::kDead) {
      i = node.behind;
      continue;
    }
    if (node.token != TokenTrie::kNoToken) put_bit(bits, node.token, true);
    above[node.depth + 1] = next;
    ++i;
  }
  if (machine.any_special(set))
    for (const tokenizer::TokenId id : trie_.specials()) put_bit(bits, static_cast<std::size_t>(id), true);
  for (const tokenizer::TokenId id : machine.tokens(set)) put_bit(bits, static_cast<std::size_t>(id), true);
  return bits;
}

}  // namespace sluice::engine
