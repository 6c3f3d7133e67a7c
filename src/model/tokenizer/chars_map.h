// SentencePiece's precompiled map of characters to their normal form, as tokenizer.json carries it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::model {

// u32 bytes of trie | trie: a double array of u32 units (darts-clone) | replacements, each ended by a zero
// byte. Immutable; thread-safe.
class CharsMap {
 public:
  static constexpr std::size_t kMaxReplacementBytes = 1024;  // published: 33

  // Error(kInvalid) naming `where`: sizes that do not fit, replacements that are not UTF-8 or too long.
  CharsMap(std::string_view bytes, const std::string& where);
  // What replaces `text`: the value of the shortest key that it begins with, as the published normalizers do
  // it. Whatever the trie holds, the answer is well-formed UTF-8.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::optional<std::uint32_t> value_of_shortest_prefix(std::string_view text) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace sluice::model
