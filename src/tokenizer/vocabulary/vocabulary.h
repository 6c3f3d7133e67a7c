// Token contents and ids: one arena of bytes, a table by id and an open-addressing index by content. A
// vocabulary of 150,000 tokens takes about 5 MB; tokens are not separate objects.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

class Vocabulary {
 public:
  static constexpr TokenId kMaxId = (1 << 24) - 1;  // 64 times the largest published vocabulary

  enum class Added { kYes, kContentTaken, kIdTaken };
  Added add(std::string_view content, TokenId id);  // id in [0, kMaxId]
  void shrink_to_fit();

  std::optional<TokenId> find(std::string_view content) const;
  std::optional<std::string_view> content(TokenId id) const;              // empty for a hole or an id outside
  std::size_t size() const { return size_; }                              // number of tokens
  TokenId end_id() const { return static_cast<TokenId>(by_id_.size()); }  // largest id + 1
  std::size_t longest_bytes() const { return longest_bytes_; }
  std::size_t bytes() const;  // memory held

  // Its representation as tables of a file (docs/store-format.md, section 5.2).
  static constexpr std::uint32_t kHole = UINT32_MAX;
  struct Entry {
    std::uint32_t offset = 0;      // in the text
    std::uint32_t length = kHole;  // bytes
  };
  std::string_view text() const { return arena_; }           // contents, one after the other
  std::span<const Entry> entries() const { return by_id_; }  // by id
  std::span<const TokenId> slots() const { return slots_; }  // a table of ids by XXH3 of their contents
  // Rebuilds it from its tables. Error(kInvalid) in `where` unless they fit together, so that no look-up
  // reads past them or runs forever.
  static Vocabulary of_tables(std::string text, std::vector<Entry> entries, std::vector<TokenId> slots,
                              const std::string& where);

 private:
  std::string_view text(TokenId id) const {
    const Entry& entry = by_id_[static_cast<std::size_t>(id)];
    return {arena_.data() + entry.offset, entry.length};
  }
  // The slot that holds the content, or the free slot where it belongs.
  std::size_t slot_of(std::string_view content) const;
  void grow();

  std::string arena_;
  std::vector<Entry> by_id_;
  std::vector<TokenId> slots_;  // size is a power of two, or 0; -1 is free; linear probing, at most 2/3 full
  std::size_t size_ = 0;
  std::size_t longest_bytes_ = 0;
};

}  // namespace sluice::tokenizer
