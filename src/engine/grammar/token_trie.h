// The bytes of all tokens of a vocabulary, in one sorted tree that is walked from its first node to its
// last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace sluice::engine {

// Immutable; thread-safe.
class TokenTrie {
 public:
  static constexpr std::uint32_t kNoToken = UINT32_MAX;
  // A node stands before those below it; tokens of the same bytes have nodes beside each other.
  struct Node {
    std::uint32_t token = kNoToken;  // whose bytes end here
    std::uint32_t behind = 0;        // the first node that is not below this one
    std::uint16_t depth = 0;         // from 0
    std::uint8_t byte = 0;
  };

  // Special tokens, and rows without text, have no node.
  explicit TokenTrie(const tokenizer::Tokenizer& tokenizer);
  // `tokens`: ids and their bytes. `specials`: ids.
  TokenTrie(std::vector<std::pair<tokenizer::TokenId, std::string>> tokens,
            std::vector<tokenizer::TokenId> specials);

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const tokenizer::TokenId> specials() const { return specials_; }
  std::size_t vocabulary() const { return vocabulary_; }  // the largest id + 1
  std::size_t depth() const { return depth_; }            // bytes of the longest token
  std::size_t bytes() const;                              // the memory that it takes

 private:
  void build(std::vector<std::pair<tokenizer::TokenId, std::string>> tokens);

  std::vector<Node> nodes_;
  std::vector<tokenizer::TokenId> specials_;  // ascending
  std::size_t vocabulary_ = 0, depth_ = 0;
};

}  // namespace sluice::engine
