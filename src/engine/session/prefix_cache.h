// Keys and values of running and ended sequences, found again by their tokens, so that a prompt that begins
// as an earlier one did is prefilled from where they part.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "engine/session/prefix_tree.h"
#include "engine/session/sequence.h"
#include "kernels/ops/ops.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Blocks of the pool. Cached ones belong to no sequence, and are taken back when blocks are needed: the least
// recently used first, and of one text the last first.
struct KvUse {
  std::size_t free = 0, used = 0, cached = 0;
};

// The pool's memory may be the host's or a device's. An encoder-decoder finds nothing and leaves nothing: its
// keys and values depend on the encoder's input, too. Called between passes, or while passes are suspended.
// Thread-compatible.
class PrefixCache {
 public:
  using Tokens = PrefixTree::Tokens;
  // Makes a sequence without room, whose end is told to ended().
  using MakeSequence = std::function<std::unique_ptr<Sequence>()>;

  // All must outlive it. `ops`: of the unit that has the pool. `positions`: that a sequence may have at most.
  PrefixCache(const model::ModelConfig& config, KvPool& pool, kernels::Ops& ops, std::size_t positions,
              MakeSequence make);

  // A sequence with room for `positions` tokens that holds as many of the prompt's first tokens as are found,
  // to the very token (Sequence::length()), but not the last, which is computed for its logits; none where
  // `reuse` is false. Blocks whose tokens all agree are shared; of one that agrees in part the agreeing rows
  // are copied. The rows have the bits that would be computed. Null, and nothing changes, if too few blocks
  // are free or cached. Error(kIo) of a device that copies. REQUIRES: 1 <= prompt.size() <= positions <=
  // most_positions().
  std::unique_ptr<Sequence> begin(Tokens prompt, std::size_t positions, bool reuse = true);
  // A sequence that holds nothing and finds nothing. Error(kBudget) if too few blocks are free or cached.
  std::unique_ptr<Sequence> begin_empty(std::size_t positions);
  // Room for `positions` tokens in all, from now on. False, and nothing changes, if too few blocks are free
  // or cached. Errors as begin(). REQUIRES: positions <= most_positions().
  bool grow(Sequence& sequence, std::size_t positions);
  // Says which tokens the sequence holds: from now on others find them, also after it has ended, and it
  // cannot be cut below them. `tokens`: the first Sequence::length() ones count. A sequence that is never
  // named here leaves nothing. Where others have computed the same, it goes on with their blocks.
  void share(Sequence& sequence, Tokens tokens);
  // A sequence is about to give back its blocks: what others find of it is used now, for the last time.
  void ended(const Sequence& sequence);

  // Tokens that begin() would find.
  std::size_t find(Tokens prompt) const;
  KvUse use() const;
  std::size_t most_positions() const;  // that one sequence can have when it is alone

 private:
  PrefixTree::Found found(Tokens prompt) const;
  // Whether blocks for this many positions are free or idle.
  bool can_have(std::size_t positions) const;
  // Whether begin() can take this block out of the tree, and have blocks for the rest of this many positions.
  bool can_be_moved(KvPool::BlockId block, std::size_t positions) const;
  std::vector<KvPool::BlockId> take(std::size_t positions);  // evicts. Error(kBudget)

  KvPool& pool_;
  kernels::Ops& ops_;
  const bool reuses_;
  const std::size_t positions_;
  const MakeSequence make_;
  PrefixTree tree_;
};

}  // namespace sluice::engine
