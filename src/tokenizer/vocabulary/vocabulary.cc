#include "tokenizer/vocabulary/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {

Vocabulary::Added Vocabulary::add(std::string_view content, TokenId id) {
  SLUICE_CHECK(id >= 0 && id <= kMaxId, std::to_string(id));
  const auto index = static_cast<std::size_t>(id);
  if (index < by_id_.size() && by_id_[index].length != kHole) return Added::kIdTaken;
  if ((size_ + 1) * 3 > slots_.size() * 2) grow();
  const std::size_t slot = slot_of(content);
  if (slots_[slot] >= 0) return Added::kContentTaken;
  SLUICE_CHECK(arena_.size() + content.size() < UINT32_MAX);
  if (index >= by_id_.size()) by_id_.resize(index + 1);
  by_id_[index] = {static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint32_t>(content.size())};
  arena_ += content;
  slots_[slot] = id;
  ++size_;
  longest_bytes_ = std::max(longest_bytes_, content.size());
  return Added::kYes;
}

void Vocabulary::shrink_to_fit() {
  arena_.shrink_to_fit();
  by_id_.shrink_to_fit();
}

std::optional<TokenId> Vocabulary::find(std::string_view content) const {
  if (slots_.empty() || content.size() > longest_bytes_) return std::nullopt;
  const TokenId id = slots_[slot_of(content)];
  if (id < 0) return std::nullopt;
  return id;
}

std::optional<std::string_view> Vocabulary::content(TokenId id) const {
  if (id < 0 || id >= end_id() || by_id_[static_cast<std::size_t>(id)].length == kHole) return std::nullopt;
  return text(id);
}

std::size_t Vocabulary::bytes() const {
  return arena_.capacity() + by_id_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(TokenId);
}

std::size_t Vocabulary::slot_of(std::string_view content) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = xxh3(std::as_bytes(std::span(content))) & mask;
  while (slots_[slot] >= 0 && text(slots_[slot]) != content) slot = (slot + 1) & mask;
  return slot;
}

Vocabulary Vocabulary::of_tables(std::string text, std::vector<Entry> entries, std::vector<TokenId> slots,
                                 const std::string& where) {
  const auto check = [&](bool fits, std::string_view expected, std::size_t found) {
    if (fits) return;
    throw Error(ErrorKind::kInvalid, "tables of a vocabulary do not fit together")
        .in(where)
        .expected(expected)
        .found(fmt::format("{}", found));
  };
  check(entries.size() <= std::size_t{kMaxId} + 1, "ids of at most 24 bits", entries.size());
  Vocabulary vocabulary;
  for (std::size_t id = 0; id < entries.size(); ++id) {
    const Entry& entry = entries[id];
    if (entry.length == kHole) continue;
    check(entry.offset <= text.size() && entry.length <= text.size() - entry.offset, "tokens inside the text",
          id);
    check(!find_invalid_utf8(std::string_view(text).substr(entry.offset, entry.length)), "tokens of UTF-8",
          id);
    vocabulary.longest_bytes_ = std::max<std::size_t>(vocabulary.longest_bytes_, entry.length);
    ++vocabulary.size_;
  }
  check(slots.empty() || std::has_single_bit(slots.size()), "a power of two slots", slots.size());
  std::size_t used = 0;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const TokenId id = slots[slot];
    check(id >= -1 && (id < 0 || (static_cast<std::size_t>(id) < entries.size() &&
                                  entries[static_cast<std::size_t>(id)].length != kHole)),
          "a token in every slot that is not free", slot);
    used += id >= 0 ? 1 : 0;
  }
  check(used == vocabulary.size_ && used * 3 <= slots.size() * 2, "as many slots as tokens, and some free",
        used);
  vocabulary.arena_ = std::move(text);
  vocabulary.by_id_ = std::move(entries);
  vocabulary.slots_ = std::move(slots);
  return vocabulary;
}

void Vocabulary::grow() {
  std::vector<TokenId> old(std::max<std::size_t>(slots_.size() * 2, 64), -1);
  old.swap(slots_);
  for (const TokenId id : old) {
    if (id >= 0) slots_[slot_of(text(id))] = id;
  }
}

}  // namespace sluice::tokenizer
