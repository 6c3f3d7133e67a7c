#include "model/tokenizer/vocabulary.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace sluice::model {

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
  std::size_t slot = std::hash<std::string_view>{}(content)&mask;
  while (slots_[slot] >= 0 && text(slots_[slot]) != content) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow() {
  std::vector<TokenId> old(std::max<std::size_t>(slots_.size() * 2, 64), -1);
  old.swap(slots_);
  for (const TokenId id : old) {
    if (id >= 0) slots_[slot_of(text(id))] = id;
  }
}

}  // namespace sluice::model
