// A set of byte strings, each with a number; finds the longest string that a text begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tokenizer {

class ByteTrie {
 public:
  // A string that is already in the set keeps its first number. Empty strings are ignored.
  void add(std::string_view text, std::uint32_t number);

  struct Found {
    std::uint32_t number;
    std::size_t length;  // bytes
  };
  std::optional<Found> longest_prefix(std::string_view text) const;
  // Visits every string that the text begins with, the shortest first.
  template <class F>
  void for_each_prefix(std::string_view text, F&& f) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child_of(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].number != kNone) f(Found{nodes_[node].number, i + 1});
    }
  }
  bool empty() const { return nodes_.size() == 1; }

  // Its representation: tables of a file (docs/store-format.md, section 5.2). A child stands behind its
  // parent and before the sibling that was added earlier.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Node {
    std::uint32_t child = 0;  // first child; 0: none
    std::uint32_t sibling = 0;
    std::uint32_t number = kNone;
    std::uint32_t byte = 0;
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::uint32_t> roots() const { return roots_; }
  // Rebuilds it from its tables. Error(kInvalid) in `where` unless every search in them ends, and every
  // number is below `end`.
  static ByteTrie of_tables(std::vector<Node> nodes, std::vector<std::uint32_t> roots, std::uint32_t end,
                            const std::string& where);

 private:
  std::uint32_t child_of(std::uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<std::uint32_t> roots_ = std::vector<std::uint32_t>(256, 0);  // children of the root, by byte
};

}  // namespace sluice::tokenizer
