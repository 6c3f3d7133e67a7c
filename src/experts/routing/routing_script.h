// Routing that was recorded elsewhere, in the shape of the model that plays it (docs/replay.md, "Played
// routing").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sluice::experts {

// Filled once, then constant, and so thread-safe.
class RoutingScript {
 public:
  // `source` is what outputs call it: the file, and how it was fitted to the model.
  RoutingScript(std::uint32_t layers, std::uint32_t top_k, std::string source);
  void add_to_source(std::string_view words) { source_ += words; }

  // Sequences are numbered from 0 as they are begun. The tokens of a sequence are added in order.
  void begin_sequence() { rows_.emplace_back(); }
  void add_token(std::size_t sequence);
  // For the last token of the sequence: at most top_k distinct experts, ascending.
  void set(std::size_t sequence, std::uint32_t layer, std::span<const std::uint16_t> experts);

  std::uint32_t layers() const { return layers_; }
  std::uint32_t top_k() const { return top_k_; }
  const std::string& source() const { return source_; }
  std::size_t sequences() const { return rows_.size(); }
  std::size_t tokens(std::size_t sequence) const { return rows_[sequence].size() / row(); }
  std::span<const std::uint16_t> experts(std::size_t sequence, std::size_t token, std::uint32_t layer) const;
  Bytes bytes() const;  // that it takes in memory

 private:
  static constexpr std::uint16_t kNone = 0xffff;  // fills the places behind the experts of a token and layer
  std::size_t row() const { return std::size_t{layers_} * top_k_; }

  std::uint32_t layers_, top_k_;
  std::string source_;
  std::vector<std::vector<std::uint16_t>> rows_;  // by sequence: (tokens, L, k)
};

}  // namespace sluice::experts
