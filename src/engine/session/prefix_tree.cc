#include "engine/session/prefix_tree.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;

std::size_t agreeing(PrefixTree::Tokens a, PrefixTree::Tokens b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool begins_with(PrefixTree::Tokens tokens, PrefixTree::Tokens beginning) {
  return agreeing(tokens, beginning) == beginning.size();
}

}  // namespace

std::size_t PrefixTree::Found::tokens() const { return full.size() * kCacheBlock + part_tokens; }

std::vector<KvPool::BlockId>::const_iterator PrefixTree::place(const std::vector<BlockId>& children,
                                                               Tokens tokens) const {
  return std::ranges::lower_bound(
      children, tokens, [](Tokens a, Tokens b) { return std::ranges::lexicographical_compare(a, b); },
      [this](BlockId block) { return Tokens(nodes_[block].tokens); });
}

PrefixTree::Found PrefixTree::find(Tokens tokens) const {
  Found found;
  BlockId parent = kRoot;
  while (!tokens.empty()) {
    const Tokens wanted = tokens.first(std::min(tokens.size(), kCacheBlock));
    const std::vector<BlockId>& all = children(parent);
    // What agrees most stands on one side of the place where the tokens would be.
    const auto at = place(all, wanted);
    BlockId best = kRoot;
    std::size_t most = 0;
    const auto see = [&](BlockId block) {
      const std::size_t count = agreeing(wanted, nodes_[block].tokens);
      if (count > most) std::tie(best, most) = std::pair(block, count);
    };
    if (at != all.end()) see(*at);
    if (at != all.begin()) see(*std::prev(at));
    if (most < kCacheBlock) {
      if (most > 0) std::tie(found.part, found.part_tokens) = std::pair(best, most);
      break;
    }
    found.full.push_back(best);
    parent = best;
    tokens = tokens.subspan(kCacheBlock);
  }
  return found;
}

KvPool::BlockId PrefixTree::put(BlockId parent, Tokens tokens, BlockId block) {
  SLUICE_CHECK(!tokens.empty() && tokens.size() <= kCacheBlock);
  if (nodes_.empty()) nodes_.resize(pool_.blocks());
  SLUICE_CHECK(parent == kRoot || nodes_[parent].tokens.size() == kCacheBlock, "a block is below none");
  std::vector<BlockId>& siblings = children(parent);
  if (const auto at = place(siblings, tokens);
      at != siblings.end() && begins_with(nodes_[*at].tokens, tokens))
    return *at;
  if (has(block)) {
    SLUICE_CHECK(nodes_[block].parent == parent && begins_with(tokens, nodes_[block].tokens),
                 "a block holds other tokens");
    unlink(block);
  } else {
    pool_.hold({&block, 1});
  }
  // Tokens that these begin with stand right before them: anything between would begin with them, too.
  if (const auto at = place(siblings, tokens);
      at != siblings.begin() && begins_with(tokens, nodes_[*std::prev(at)].tokens))
    drop(*std::prev(at));
  siblings.insert(place(siblings, tokens), block);
  Node& node = nodes_[block];
  node.tokens.assign(tokens.begin(), tokens.end());
  node.parent = parent;
  return block;
}

void PrefixTree::touch(BlockId block) { nodes_[block].used = ++clock_; }

std::size_t PrefixTree::idle() const {
  std::size_t count = 0;
  for (BlockId block = 0; block < nodes_.size(); ++block)
    count += has(block) && pool_.holders(block) == 1 ? 1 : 0;
  return count;
}

bool PrefixTree::is_idle_leaf(BlockId block) const {
  return has(block) && pool_.holders(block) == 1 && nodes_[block].children.empty();
}

void PrefixTree::evict_until(const std::function<bool()>& enough) {
  if (enough()) return;
  using Aged = std::pair<std::uint64_t, BlockId>;
  std::priority_queue<Aged, std::vector<Aged>, std::greater<>> oldest;
  for (BlockId block = 0; block < nodes_.size(); ++block)
    if (is_idle_leaf(block)) oldest.emplace(nodes_[block].used, block);
  while (!enough() && !oldest.empty()) {
    const BlockId block = oldest.top().second, parent = nodes_[block].parent;
    oldest.pop();
    drop(block);
    if (parent != kRoot && is_idle_leaf(parent)) oldest.emplace(nodes_[parent].used, parent);
  }
}

void PrefixTree::remove(BlockId block) {
  for (BlockId at = block;;) {
    while (!nodes_[at].children.empty()) at = nodes_[at].children.back();
    const BlockId parent = nodes_[at].parent;
    drop(at);
    if (at == block) return;
    at = parent;
  }
}

void PrefixTree::unlink(BlockId block) {
  std::vector<BlockId>& siblings = children(nodes_[block].parent);
  siblings.erase(place(siblings, nodes_[block].tokens));
}

void PrefixTree::drop(BlockId block) {
  SLUICE_CHECK(nodes_[block].children.empty(), "a block goes that others continue");
  unlink(block);
  nodes_[block] = {};
  pool_.give_back({&block, 1});
}

}  // namespace sluice::engine
