#include "model/tokenizer/byte_trie.h"

namespace sluice::model {

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

}  // namespace sluice::model
