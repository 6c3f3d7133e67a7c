// For tests of the prefix cache: what it is to know, as a list of texts that is searched in full.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "engine/session/prefix_cache.h"

namespace sluice::engine::testing {

using Text = std::vector<tokenizer::TokenId>;

inline Text first_of(const Text& text, std::size_t count) {
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
}

inline bool is_beginning(const Text& beginning, const Text& text) {
  return beginning.size() <= text.size() && std::equal(beginning.begin(), beginning.end(), text.begin());
}

// In which the last token lies.
inline std::size_t block_of(std::size_t tokens) { return (tokens - 1) / kernels::kCacheBlock; }
inline std::size_t blocks_for(std::size_t tokens) {
  return (tokens + kernels::kCacheBlock - 1) / kernels::kCacheBlock;
}

// What is known, as a list of texts: each stands for the block that holds its last tokens.
class KnownTexts {
 public:
  explicit KnownTexts(std::size_t blocks) : blocks_(blocks) {}

  std::size_t find(const Text& prompt) const {
    std::size_t most = 0;
    for (const Known& known : known_) {
      std::size_t count = 0;
      while (count < known.text.size() && count + 1 < prompt.size() && known.text[count] == prompt[count])
        ++count;
      most = std::max(most, count);
    }
    return most;
  }

  // False: there is no room. `moved`: there is none for a copy.
  bool begin(int id, const Text& prompt, std::size_t positions, bool reuse, bool& moved) {
    std::size_t found = reuse ? find(prompt) : 0;
    const std::size_t shared = found / kernels::kCacheBlock;
    const std::size_t needed = blocks_for(positions) - shared;
    std::set<const Known*> path;
    for (const Known& known : known_)
      if (known.text.size() <= shared * kernels::kCacheBlock && is_beginning(known.text, prompt))
        path.insert(&known);
    std::size_t there = free();
    for (const Known& known : known_)
      if (known.users.empty() && !path.contains(&known)) ++there;
    if (needed > there) return false;
    const auto source = found % kernels::kCacheBlock == 0 ? known_.end() : source_of(prompt, shared, found);
    moved = source != known_.end() && source->users.empty() && needed > there - 1;
    for (Known& known : known_)
      if (path.contains(&known)) known.users.insert(id);
    if (moved) {
      const Text text = source->text;
      std::erase_if(known_, [&](const Known& known) { return is_beginning(text, known.text); });
      evict_for(needed);
    } else {
      if (source != known_.end()) source->users.insert(-1);  // not evicted
      evict_for(needed);
      if (source != known_.end()) {
        source->users.erase(-1);
        touch(source->text);
      }
    }
    if (shared != 0) touch(shared_[id] = first_of(prompt, shared * kernels::kCacheBlock));
    tables_[id] = blocks_for(positions);
    return true;
  }

  bool grow(int id, std::size_t positions) {
    const std::size_t more = blocks_for(positions) - std::min(blocks_for(positions), tables_[id]);
    if (more > free() + idle()) return false;
    evict_for(more);
    tables_[id] += more;
    return true;
  }

  void share(int id, const Text& text) {
    if (text.empty()) return;
    for (std::size_t end = std::min(kernels::kCacheBlock, text.size());;
         end = std::min(end + kernels::kCacheBlock, text.size())) {
      put(id, first_of(text, end));
      if (end == text.size()) break;
    }
    touch(text);
    shared_[id] = text;
  }

  void end(int id) {
    if (shared_.contains(id)) {
      const Text& text = shared_[id];
      const std::size_t full = text.size() / kernels::kCacheBlock * kernels::kCacheBlock;
      const auto own = std::ranges::find_if(known_, [&](const Known& known) {
        return text.size() != full && known.users.contains(id) &&
               block_of(known.text.size()) == block_of(text.size());
      });
      if (own != known_.end())
        touch(Text(own->text));
      else if (full != 0)
        touch(first_of(text, full));
    }
    for (Known& known : known_) known.users.erase(id);
    tables_.erase(id);
    shared_.erase(id);
  }

  std::size_t idle() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(known_, [](const Known& known) { return known.users.empty(); }));
  }
  std::size_t used() const {
    std::size_t count = known_.size() - idle();
    for (const auto& [id, blocks] : tables_) {
      count += blocks;
      for (const Known& known : known_) count -= known.users.contains(id) ? 1 : 0;
    }
    return count;
  }
  std::size_t free() const { return blocks_ - used() - idle(); }
  std::size_t evicted() const { return evicted_; }
  std::vector<Text> texts() const {
    std::vector<Text> all;
    for (const Known& known : known_) all.push_back(known.text);
    return all;
  }

 private:
  struct Known {
    Text text;
    std::set<int> users;
    std::uint64_t used = 0;
  };

  // The block that agrees most in part: the next text from the prompt upwards, or else downwards.
  std::list<Known>::iterator source_of(const Text& prompt, std::size_t shared, std::size_t found) {
    const Text wanted = first_of(prompt, std::min((shared + 1) * kernels::kCacheBlock, prompt.size() - 1));
    auto above = known_.end(), below = known_.end();
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (block_of(at->text.size()) != shared || at->text.size() < found ||
          !std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(found), at->text.begin()))
        continue;
      if (at->text >= wanted && (above == known_.end() || at->text < above->text)) above = at;
      if (at->text < wanted && (below == known_.end() || at->text > below->text)) below = at;
    }
    return above != known_.end() ? above : below;
  }

  void put(int id, const Text& text) {
    const std::size_t block = block_of(text.size());
    auto own = known_.end();
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (block_of(at->text.size()) != block) continue;
      if (is_beginning(text, at->text)) {
        if (text.size() % kernels::kCacheBlock == 0) at->users.insert(id);
        return;
      }
      if (at->users.contains(id)) own = at;
    }
    if (own == known_.end()) own = known_.insert(known_.end(), Known{{}, {id}});
    own->text = text;
    known_.remove_if([&](const Known& known) {
      return block_of(known.text.size()) == block && known.text.size() < text.size() &&
             is_beginning(known.text, text);
    });
  }

  void touch(const Text& text) {
    ++clock_;
    const std::size_t block = block_of(text.size());
    Known* here = nullptr;  // the first of those that cover it
    for (Known& known : known_) {
      const std::size_t at = block_of(known.text.size());
      if (at < block && is_beginning(known.text, text)) known.used = clock_;
      if (at == block && is_beginning(text, known.text) && (here == nullptr || known.text < here->text))
        here = &known;
    }
    if (here != nullptr) here->used = clock_;
  }

  void evict_for(std::size_t needed) {
    while (free() < needed) {
      auto oldest = known_.end();
      for (auto at = known_.begin(); at != known_.end(); ++at) {
        const bool has_more = std::ranges::any_of(known_, [&](const Known& other) {
          return block_of(other.text.size()) > block_of(at->text.size()) &&
                 is_beginning(at->text, other.text);
        });
        if (at->users.empty() && !has_more && (oldest == known_.end() || at->used < oldest->used))
          oldest = at;
      }
      ASSERT_NE(oldest, known_.end());
      known_.erase(oldest);
      ++evicted_;
    }
  }

  const std::size_t blocks_;
  std::list<Known> known_;
  std::map<int, std::size_t> tables_;  // blocks of running sequences
  std::map<int, Text> shared_;
  std::uint64_t clock_ = 0;
  std::size_t evicted_ = 0;
};

}  // namespace sluice::engine::testing
