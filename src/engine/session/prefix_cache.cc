#include "engine/session/prefix_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;
using BlockId = KvPool::BlockId;

std::size_t without_block(std::size_t positions) { return positions - std::min(positions, kCacheBlock); }

// Blocks that are held for as long as it lives, or until they are handed on.
class Held {
 public:
  Held(KvPool& pool, std::vector<BlockId> blocks) : pool_(pool), blocks_(std::move(blocks)) {}
  ~Held() { release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const std::vector<BlockId>& blocks() const { return blocks_; }
  void release() { pool_.give_back(std::exchange(blocks_, {})); }
  BlockId hand_first() {
    const BlockId first = blocks_.front();
    blocks_.erase(blocks_.begin());
    return first;
  }
  void hand_to(Sequence& sequence, std::size_t positions) {
    sequence.add_room(blocks_, positions);
    blocks_.clear();
  }

 private:
  KvPool& pool_;
  std::vector<BlockId> blocks_;
};

std::vector<BlockId> with_holder(KvPool& pool, std::vector<BlockId> blocks) {
  pool.hold(blocks);
  return blocks;
}

}  // namespace

PrefixCache::PrefixCache(const model::ModelConfig& config, KvPool& pool, kernels::Ops& ops,
                         std::size_t positions, MakeSequence make)
    : pool_(pool),
      ops_(ops),
      reuses_(!config.has_encoder()),
      positions_(positions),
      make_(std::move(make)),
      tree_(pool) {}

std::size_t PrefixCache::most_positions() const { return std::min(positions_, pool_.rows()); }

PrefixTree::Found PrefixCache::found(Tokens prompt) const {
  if (!reuses_ || prompt.empty()) return {};
  return tree_.find(prompt.first(prompt.size() - 1));
}

std::size_t PrefixCache::find(Tokens prompt) const { return found(prompt).tokens(); }

KvUse PrefixCache::use() const {
  KvUse use{.free = pool_.free_blocks(), .cached = tree_.idle()};
  use.used = pool_.blocks() - use.free - use.cached;
  return use;
}

bool PrefixCache::can_have(std::size_t positions) const {
  if (positions == 0) return true;
  const std::size_t count = (positions + kCacheBlock - 1) / kCacheBlock;
  std::size_t whole = pool_.free_blocks() + tree_.idle();
  // A last block that is shorter will do as the last of a sequence alone.
  const auto last = static_cast<BlockId>(pool_.blocks() - 1);
  const std::size_t rows = pool_.rows_of(last);
  const std::size_t holders = pool_.holders(last);
  const bool there = rows < kCacheBlock && (holders == 0 || (holders == 1 && tree_.has(last)));
  if (there) --whole;
  return count <= whole || (there && count == whole + 1 && (positions - 1) % kCacheBlock < rows);
}

std::vector<BlockId> PrefixCache::take(std::size_t positions) {
  if (can_have(positions)) tree_.evict_until([&] { return pool_.has(positions); });
  return pool_.take(positions);
}

std::unique_ptr<Sequence> PrefixCache::begin_empty(std::size_t positions) {
  std::unique_ptr<Sequence> sequence = make_();
  sequence->add_room(take(positions), positions);
  return sequence;
}

bool PrefixCache::can_be_moved(BlockId block, std::size_t positions) const {
  const bool idle = pool_.holders(block) == 2;  // the tree, and begin()
  return idle && std::min(positions, kCacheBlock) <= pool_.rows_of(block) &&
         can_have(without_block(positions));
}

std::unique_ptr<Sequence> PrefixCache::begin(Tokens prompt, std::size_t positions, bool reuse) {
  SLUICE_CHECK(!prompt.empty() && prompt.size() <= positions && positions <= most_positions());
  PrefixTree::Found found = reuse ? this->found(prompt) : PrefixTree::Found{};
  const std::size_t shared = found.full.size() * kCacheBlock, rest = positions - shared;
  std::vector<BlockId> in_part;
  if (found.part_tokens != 0) in_part.push_back(found.part);
  Held full(pool_, with_holder(pool_, found.full)), part(pool_, with_holder(pool_, in_part));
  // Where there is no room for a copy, the block itself becomes the sequence's.
  const bool moves = !in_part.empty() && !can_have(rest) && can_be_moved(found.part, rest);
  if (!in_part.empty() && !can_have(rest) && !moves) {
    part.release();
    found.part_tokens = 0;
  }
  if (!moves && !can_have(rest)) return nullptr;

  std::unique_ptr<Sequence> sequence = make_();
  full.hand_to(*sequence, shared);
  if (moves) {
    tree_.remove(found.part);
    part.hand_to(*sequence, shared + std::min(rest, kCacheBlock));
    sequence->add_room(take(without_block(rest)), positions);
  } else {
    Held fresh(pool_, take(rest));
    if (found.part_tokens != 0) {
      pool_.copy_rows(found.part, found.part_tokens, fresh.blocks().front(), ops_);
      tree_.touch(found.part);
    }
    fresh.hand_to(*sequence, positions);
  }
  if (!found.full.empty()) tree_.touch(found.full.back());
  sequence->advance(found.tokens());
  sequence->share(shared);
  return sequence;
}

bool PrefixCache::grow(Sequence& sequence, std::size_t positions) {
  SLUICE_CHECK(positions <= most_positions());
  if (positions <= sequence.positions()) return true;
  const std::span<const BlockId> before = sequence.blocks();
  std::size_t kept = before.size();
  // The pool's last block, which may be shorter, makes way for another where more follows.
  if (kept != 0 && positions > (kept - 1) * kCacheBlock + pool_.rows_of(before.back()) &&
      pool_.rows_of(before.back()) < kCacheBlock)
    --kept;
  const std::size_t rest = positions - std::min(positions, kept * kCacheBlock);
  if (!can_have(rest)) return false;
  Held fresh(pool_, take(rest));
  if (kept < before.size()) {
    pool_.copy_rows(before.back(), pool_.rows_of(before.back()), fresh.blocks().front(), ops_);
    sequence.replace_block(kept, fresh.hand_first());
  }
  fresh.hand_to(sequence, positions);
  return true;
}

void PrefixCache::share(Sequence& sequence, Tokens tokens) {
  if (!reuses_ || sequence.length() == 0) return;
  SLUICE_CHECK(tokens.size() >= sequence.length(), "a sequence holds tokens that are not named");
  tokens = tokens.first(sequence.length());
  std::size_t i = sequence.shared_tokens() / kCacheBlock;  // these blocks are in the tree
  BlockId last = i == 0 ? PrefixTree::kRoot : sequence.blocks()[i - 1];
  for (; i * kCacheBlock < tokens.size(); ++i) {
    const Tokens of_block = tokens.subspan(i * kCacheBlock);
    const bool full = of_block.size() >= kCacheBlock;
    const BlockId own = sequence.blocks()[i];
    const BlockId there = tree_.put(last, of_block.first(std::min(of_block.size(), kCacheBlock)), own);
    if (there != own && full) {
      pool_.hold({&there, 1});
      sequence.replace_block(i, there);
    }
    last = there;
  }
  tree_.touch(last);
  sequence.share(tokens.size());
}

void PrefixCache::ended(const Sequence& sequence) {
  const std::size_t tokens = sequence.shared_tokens(), full = tokens / kCacheBlock;
  if (tokens % kCacheBlock != 0 && tree_.has(sequence.blocks()[full]))
    tree_.touch(sequence.blocks()[full]);
  else if (full != 0)
    tree_.touch(sequence.blocks()[full - 1]);
}

}  // namespace sluice::engine
