// SentencePiece's precompiled map from characters to their normal form, as tokenizer.json contains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tokenizer {

// u32 bytes of trie | trie: a double array of u32 units (darts-clone) | replacements, each with a final zero
// byte. Immutable; thread-safe.
class CharsMap {
 public:
  static constexpr std::size_t kMaxReplacementBytes = 1024;  // the longest published one has 33

  // Error(kInvalid) naming `where` for sizes that do not fit, and replacements that are not UTF-8 or too
  // long.
  CharsMap(std::string_view bytes, const std::string& where);
  // The replacement for the start of `text`: the value of the shortest key that it begins with, as in the
  // published normalizers. The result is well-formed UTF-8, whatever the trie holds.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::optional<std::uint32_t> value_of_shortest_prefix(std::string_view text) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace sluice::tokenizer
