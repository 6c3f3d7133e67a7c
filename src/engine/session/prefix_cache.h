// Keys and values of running and ended sequences, found again by their tokens, so that a prompt that begins
// as an earlier one did is prefilled from where they part. The blocks of a KvPool form a tree by their tokens.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/session/sequence.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Blocks of the pool. Cached ones belong to no sequence, and are taken back when blocks are needed.
struct KvUse {
  std::size_t free = 0, used = 0, cached = 0;
};

// Thread-compatible.
class PrefixCache {
 public:
  // A sequence with room for `positions` tokens that holds as many of the prompt's first tokens as are found,
  // to the very token (Sequence::length()), but not the last, which is computed for its logits; none where
  // `reuse` is false. Blocks whose tokens all agree are shared; of one that agrees in part the agreeing rows
  // are copied. The rows have the bits that would be computed. Null, and nothing changes, if too few blocks
  // are free or cached. REQUIRES: 1 <= prompt.size() <= positions <= most_positions().
  std::unique_ptr<Sequence> begin(std::span<const tokenizer::TokenId> prompt, std::size_t positions,
                                  bool reuse = true);
  // Room for `positions` tokens in all, from now on. False, and nothing changes, if too few blocks are free or
  // cached.
  bool grow(Sequence& sequence, std::size_t positions);
  // Says which tokens the sequence holds: from now on others find them, also after it has ended. `tokens`:
  // the first Sequence::length() ones count. A sequence that is never named here leaves nothing.
  void share(const Sequence& sequence, std::span<const tokenizer::TokenId> tokens);

  KvUse use() const;
  std::size_t most_positions() const;  // that one sequence can have when it is alone
};

}  // namespace sluice::engine
