#include "tokenizer/vocabulary/byte_trie.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace sluice::tokenizer {

void ByteTrie::add(std::string_view text, std::uint32_t number) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::uint32_t child = child_of(node, byte);
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes_.size());
      Node fresh;
      fresh.byte = byte;
      if (node == 0) {
        roots_[byte] = child;
      } else {
        fresh.sibling = nodes_[node].child;
        nodes_[node].child = child;
      }
      nodes_.push_back(fresh);
    }
    node = child;
  }
  if (nodes_[node].number == kNone) nodes_[node].number = number;
}

ByteTrie ByteTrie::of_tables(std::vector<Node> nodes, std::vector<std::uint32_t> roots, std::uint32_t end,
                             const std::string& where) {
  const auto check = [&](bool fits, std::string_view expected, std::size_t found) {
    if (fits) return;
    throw Error(ErrorKind::kInvalid, "not a search tree of tokens")
        .in(where)
        .expected(expected)
        .found(fmt::format("{}", found));
  };
  check(!nodes.empty() && roots.size() == 256, "a root with 256 children", roots.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    check((node.child == 0 || node.child > i) && node.child < nodes.size() && (i == 0 || node.sibling < i) &&
              node.byte < 256,
          "children behind and siblings before each node", i);
    check(node.number == kNone || node.number < end, "ids of tokens", i);
  }
  for (const std::uint32_t root : roots) check(root < nodes.size(), "roots that are nodes", root);
  ByteTrie trie;
  trie.nodes_ = std::move(nodes);
  trie.roots_ = std::move(roots);
  return trie;
}

std::optional<ByteTrie::Found> ByteTrie::longest_prefix(std::string_view text) const {
  std::optional<Found> found;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = child_of(node, static_cast<unsigned char>(text[i]));
    if (node == 0) break;
    if (nodes_[node].number != kNone) found = {nodes_[node].number, i + 1};
  }
  return found;
}

std::uint32_t ByteTrie::child_of(std::uint32_t node, unsigned char byte) const {
  if (node == 0) return roots_[byte];
  std::uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

}  // namespace sluice::tokenizer
