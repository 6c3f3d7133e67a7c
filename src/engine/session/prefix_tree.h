// Which tokens' keys and values the blocks of a pool hold, as a tree: a block's tokens continue those of its
// parent. Bytes are no matter here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/session/kv_pool.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Blocks with kernels::kCacheBlock tokens may have children; others have fewer tokens. No block's tokens are
// the beginning of a sibling's, so each text is in the tree once. The tree is a holder of its blocks; a block
// without another holder is *idle*. Another holder of a block also holds the blocks above it, so that what is
// below an idle block is idle, too. Thread-compatible.
class PrefixTree {
 public:
  using BlockId = KvPool::BlockId;
  using Tokens = std::span<const tokenizer::TokenId>;
  static constexpr BlockId kRoot = UINT32_MAX;  // the parent of a text's first block

  // The pool must outlive it.
  explicit PrefixTree(KvPool& pool) : pool_(pool) {}
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The longest beginning of some tokens that is there.
  struct Found {
    std::vector<BlockId> full;  // blocks that agree in all their tokens, from the first on
    BlockId part = kRoot;       // behind them, one of which only the first tokens are wanted, if there is one
    std::size_t part_tokens = 0;
    std::size_t tokens() const;
  };
  Found find(Tokens tokens) const;

  // `block` holds these tokens behind those of `parent`; it may be there with fewer. Returns the block that
  // stands for them: another one, if they were there already. One whose tokens are the beginning of these is
  // not needed any more, and goes. REQUIRES: 1 … kernels::kCacheBlock tokens.
  BlockId put(BlockId parent, Tokens tokens, BlockId block);
  bool has(BlockId block) const { return block < nodes_.size() && !nodes_[block].tokens.empty(); }
  void touch(BlockId block);  // it is used now, and so are those above, which go behind it in any case

  std::size_t idle() const;  // blocks
  // Idle blocks go, least recently used first and children before parents, until `enough` says so or none is
  // left.
  void evict_until(const std::function<bool()>& enough);
  // A block and all below go. REQUIRES: those below are idle.
  void remove(BlockId block);

 private:
  struct Node {
    std::vector<tokenizer::TokenId> tokens;  // empty: the block is not in the tree
    BlockId parent = kRoot;
    std::vector<BlockId> children;  // ascending by tokens
    std::uint64_t used = 0;         // by the clock
  };

  std::vector<BlockId>& children(BlockId parent) {
    return parent == kRoot ? first_ : nodes_[parent].children;
  }
  const std::vector<BlockId>& children(BlockId parent) const {
    return parent == kRoot ? first_ : nodes_[parent].children;
  }
  // The first of some children whose tokens are not less than these.
  std::vector<BlockId>::const_iterator place(const std::vector<BlockId>& children, Tokens tokens) const;
  bool is_idle_leaf(BlockId block) const;
  void unlink(BlockId block);
  void drop(BlockId block);  // REQUIRES: no children

  KvPool& pool_;
  std::vector<Node> nodes_;  // by block; empty until something is put
  std::vector<BlockId> first_;
  std::uint64_t clock_ = 0;
};

}  // namespace sluice::engine
