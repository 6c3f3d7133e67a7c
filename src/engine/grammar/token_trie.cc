#include "engine/grammar/token_trie.h"

#include <algorithm>

namespace sluice::engine {
namespace {

using Tokens = std::vector<std::pair<tokenizer::TokenId, std::string>>;

// Longer tokens are left out: none of a real vocabulary is.
constexpr std::size_t kMostBytesOfToken = 4096;

}  // namespace

TokenTrie::TokenTrie(const tokenizer::Tokenizer& tokenizer) {
  Tokens tokens;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto id = static_cast<tokenizer::TokenId>(i);
    if (tokenizer.is_special(id))
      specials_.push_back(id);
    else
      tokens.emplace_back(id, tokenizer.bytes_of(id));
  }
  vocabulary_ = tokenizer.vocab_size();
  build(std::move(tokens));
}

TokenTrie::TokenTrie(Tokens tokens, std::vector<tokenizer::TokenId> specials)
    : specials_(std::move(specials)) {
  std::ranges::sort(specials_);
  for (const auto& [id, bytes] : tokens)
    vocabulary_ = std::max(vocabulary_, static_cast<std::size_t>(id) + 1);
  for (const tokenizer::TokenId id : specials_)
    vocabulary_ = std::max(vocabulary_, static_cast<std::size_t>(id) + 1);
  build(std::move(tokens));
}

void TokenTrie::build(Tokens tokens) {
  std::erase_if(tokens, [](const auto& token) {
    return token.second.empty() || token.second.size() > kMostBytesOfToken;
  });
  std::ranges::sort(tokens, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  std::vector<std::size_t> open;  // nodes above the last one, and itself
  const auto close = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[open.back()].behind = static_cast<std::uint32_t>(nodes_.size());
  };
  std::string_view last;
  for (const auto& [id, bytes] : tokens) {
    const auto [differs, _] = std::ranges::mismatch(bytes, last);
    auto same = static_cast<std::size_t>(differs - bytes.begin());
    if (same == bytes.size()) --same;  // the same bytes again
    close(same);
    for (std::size_t i = same; i < bytes.size(); ++i) {
      open.push_back(nodes_.size());
      nodes_.push_back({.depth = static_cast<std::uint16_t>(i), .byte = static_cast<std::uint8_t>(bytes[i])});
    }
    nodes_.back().token = static_cast<std::uint32_t>(id);
    depth_ = std::max(depth_, bytes.size());
    last = bytes;
  }
  close(0);
  nodes_.shrink_to_fit();
}

std::size_t TokenTrie::bytes() const {
  return nodes_.capacity() * sizeof(Node) + specials_.capacity() * sizeof(tokenizer::TokenId);
}

}  // namespace sluice::engine
