// Prefixes are found, shared, copied and evicted as a list of texts says that is searched in full, and a
// sequence's rows are what its own tokens wrote, whoever else holds its blocks.
#include "engine/session/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "device/space.h"
#include "kernels/context.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;
using Text = std::vector<tokenizer::TokenId>;

std::uint64_t drawn_seed() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

model::ModelConfig tiny_config(model::AttentionKind kind) {
  model::ModelConfig config;
  config.layers = 2;
  config.attention.kind = kind;
  config.attention.heads = 2;
  config.attention.kv_heads = 1;
  config.attention.head_dim = 5;
  config.attention.nope_dim = 6;
  config.attention.value_dim = 6;
  config.attention.kv_lora_rank = 7;
  config.attention.rope_dim = config.attention.rope.dims = 2;
  return config;
}

Text first_of(const Text& text, std::size_t count) {
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool is_beginning(const Text& beginning, const Text& text) {
  return beginning.size() <= text.size() && std::equal(beginning.begin(), beginning.end(), text.begin());
}

std::size_t block_of(std::size_t tokens) { return (tokens - 1) / kCacheBlock; }  // in which the last one lies
std::size_t blocks_for(std::size_t tokens) { return (tokens + kCacheBlock - 1) / kCacheBlock; }

// What is known, as a list of texts: each stands for the block that holds its last tokens.
class Model {
 public:
  explicit Model(std::size_t blocks) : blocks_(blocks) {}

  std::size_t find(const Text& prompt) const {
    std::size_t most = 0;
    for (const Known& known : known_) {
      std::size_t count = 0;
      while (count < known.text.size() && count + 1 < prompt.size() && known.text[count] == prompt[count])
        ++count;
      most = std::max(most, count);
    }
    return most;
  }

  // False: there is no room. `moved`: there is none for a copy.
  bool begin(int id, const Text& prompt, std::size_t positions, bool reuse, bool& moved) {
    std::size_t found = reuse ? find(prompt) : 0;
    const std::size_t shared = found / kCacheBlock;
    const std::size_t needed = blocks_for(positions) - shared;
    std::set<const Known*> path;
    for (const Known& known : known_)
      if (known.text.size() <= shared * kCacheBlock && is_beginning(known.text, prompt)) path.insert(&known);
    std::size_t there = free();
    for (const Known& known : known_)
      if (known.users.empty() && !path.contains(&known)) ++there;
    if (needed > there) return false;
    const auto source = found % kCacheBlock == 0 ? known_.end() : source_of(prompt, shared, found);
    moved = source != known_.end() && source->users.empty() && needed > there - 1;
    for (Known& known : known_)
      if (path.contains(&known)) known.users.insert(id);
    if (moved) {
      const Text text = source->text;
      std::erase_if(known_, [&](const Known& known) { return is_beginning(text, known.text); });
      evict_for(needed);
    } else {
      if (source != known_.end()) source->users.insert(-1);  // not evicted
      evict_for(needed);
      if (source != known_.end()) {
        source->users.erase(-1);
        touch(source->text);
      }
    }
    if (shared != 0) touch(shared_[id] = first_of(prompt, shared * kCacheBlock));
    tables_[id] = blocks_for(positions);
    return true;
  }

  bool grow(int id, std::size_t positions) {
    const std::size_t more = blocks_for(positions) - std::min(blocks_for(positions), tables_[id]);
    if (more > free() + idle()) return false;
    evict_for(more);
    tables_[id] += more;
    return true;
  }

  void share(int id, const Text& text) {
    if (text.empty()) return;
    for (std::size_t end = std::min(kCacheBlock, text.size());;
         end = std::min(end + kCacheBlock, text.size())) {
      put(id, first_of(text, end));
      if (end == text.size()) break;
    }
    touch(text);
    shared_[id] = text;
  }

  void end(int id) {
    if (shared_.contains(id)) {
      const Text& text = shared_[id];
      const std::size_t full = text.size() / kCacheBlock * kCacheBlock;
      const auto own = std::ranges::find_if(known_, [&](const Known& known) {
        return text.size() != full && known.users.contains(id) &&
               block_of(known.text.size()) == block_of(text.size());
      });
      if (own != known_.end())
        touch(Text(own->text));
      else if (full != 0)
        touch(first_of(text, full));
    }
    for (Known& known : known_) known.users.erase(id);
    tables_.erase(id);
    shared_.erase(id);
  }

  std::size_t idle() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(known_, [](const Known& known) { return known.users.empty(); }));
  }
  std::size_t used() const {
    std::size_t count = known_.size() - idle();
    for (const auto& [id, blocks] : tables_) {
      count += blocks;
      for (const Known& known : known_) count -= known.users.contains(id) ? 1 : 0;
    }
    return count;
  }
  std::size_t free() const { return blocks_ - used() - idle(); }
  std::size_t evicted() const { return evicted_; }
  std::vector<Text> texts() const {
    std::vector<Text> all;
    for (const Known& known : known_) all.push_back(known.text);
    return all;
  }

 private:
  struct Known {
    Text text;
    std::set<int> users;
    std::uint64_t used = 0;
  };

  // The block that agrees most in part: the next text from the prompt upwards, or else downwards.
  std::list<Known>::iterator source_of(const Text& prompt, std::size_t shared, std::size_t found) {
    const Text wanted = first_of(prompt, std::min((shared + 1) * kCacheBlock, prompt.size() - 1));
    auto above = known_.end(), below = known_.end();
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (block_of(at->text.size()) != shared || at->text.size() < found ||
          !std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(found), at->text.begin()))
        continue;
      if (at->text >= wanted && (above == known_.end() || at->text < above->text)) above = at;
      if (at->text < wanted && (below == known_.end() || at->text > below->text)) below = at;
    }
    return above != known_.end() ? above : below;
  }

  void put(int id, const Text& text) {
    const std::size_t block = block_of(text.size());
    auto own = known_.end();
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (block_of(at->text.size()) != block) continue;
      if (is_beginning(text, at->text)) {
        if (text.size() % kCacheBlock == 0) at->users.insert(id);
        return;
      }
      if (at->users.contains(id)) own = at;
    }
    if (own == known_.end()) own = known_.insert(known_.end(), Known{{}, {id}});
    own->text = text;
    known_.remove_if([&](const Known& known) {
      return block_of(known.text.size()) == block && known.text.size() < text.size() &&
             is_beginning(known.text, text);
    });
  }

  void touch(const Text& text) {
    ++clock_;
    const std::size_t block = block_of(text.size());
    Known* here = nullptr;  // the first of those that cover it
    for (Known& known : known_) {
      const std::size_t at = block_of(known.text.size());
      if (at < block && is_beginning(known.text, text)) known.used = clock_;
      if (at == block && is_beginning(text, known.text) && (here == nullptr || known.text < here->text))
        here = &known;
    }
    if (here != nullptr) here->used = clock_;
  }

  void evict_for(std::size_t needed) {
    while (free() < needed) {
      auto oldest = known_.end();
      for (auto at = known_.begin(); at != known_.end(); ++at) {
        const bool has_more = std::ranges::any_of(known_, [&](const Known& other) {
          return block_of(other.text.size()) > block_of(at->text.size()) &&
                 is_beginning(at->text, other.text);
        });
        if (at->users.empty() && !has_more && (oldest == known_.end() || at->used < oldest->used))
          oldest = at;
      }
      ASSERT_NE(oldest, known_.end());
      known_.erase(oldest);
      ++evicted_;
    }
  }

  const std::size_t blocks_;
  std::list<Known> known_;
  std::map<int, std::size_t> tables_;  // blocks of running sequences
  std::map<int, Text> shared_;
  std::uint64_t clock_ = 0;
  std::size_t evicted_ = 0;
};

// A pool with a cache, and sequences whose rows are a hash of the tokens up to theirs.
class Bench {
 public:
  struct Live {
    int id = 0;
    std::unique_ptr<Sequence> sequence;
    Text text;  // of which the first length() tokens are computed
    bool shares = true;
  };

  Bench(model::AttentionKind kind, DType dtype, std::size_t rows, std::size_t positions)
      : config_(tiny_config(kind)),
        dims_(config_.attention),
        dtype_(dtype),
        pool_(config_, dtype, rows, accountant_),
        cache_(config_, pool_, ops_, positions, [this] {
          return std::make_unique<Sequence>(ids_++, config_, pool_,
                                            EncoderMemory(config_, dtype_, 0, accountant_),
                                            [this](const Sequence& one) { cache_.ended(one); });
        }) {}
  ~Bench() { live.clear(); }

  PrefixCache& cache() { return cache_; }
  KvPool& pool() { return pool_; }

  void compute(Live& one, std::size_t tokens) {
    for (std::size_t t = 0; t < tokens; ++t) {
      each_row(one, one.sequence->length(), [&](const kernels::CacheRow& row, std::size_t elements, float x) {
        kernels::store_cache(std::vector<float>(elements, x).data(), row);
      });
      one.sequence->advance(1);
    }
  }

  void check_rows(Live& one) {
    for (std::size_t p = 0; p < one.sequence->length(); ++p)
      each_row(one, p, [&](const kernels::CacheRow& row, std::size_t elements, float x) {
        std::vector<std::byte> expected(elements * dtype_bytes(dtype_));
        std::vector<float> scales(row.heads * kernels::cache_groups(row.columns));
        kernels::store_cache(std::vector<float>(elements, x).data(),
                             {expected.data(), dtype_, row.heads, row.columns, scales.data(), 1});
        ASSERT_EQ(std::memcmp(row.data, expected.data(), expected.size()), 0)
            << "sequence " << one.id << ", position " << p;
        if (dtype_ == DType::kI8) {
          ASSERT_EQ(row.scales[0], scales[0]);
        }
      });
  }

  std::list<Live> live;

 private:
  template <class Work>
  void each_row(Live& one, std::size_t position, const Work& work) {
    const std::uint64_t hash = xxh3(std::as_bytes(std::span(one.text).first(position + 1)));
    for (std::size_t layer = 0; layer < config_.layers; ++layer) {
      const auto visit = [&](const kernels::CacheRows& rows, std::size_t elements, float x) {
        auto* const data = const_cast<std::byte*>(device::host_space().pointer(rows.data));
        work(rows.row(data, kernels::host_floats({rows.scales}), rows.row_of(position)), elements, x);
      };
      const auto x = static_cast<float>((hash >> (8 * layer)) % 251 + 1);
      visit(one.sequence->keys(layer), dims_.key_row, x);
      if (dims_.value_row != 0) visit(one.sequence->values(layer), dims_.value_row, x + 300);
    }
  }

  const model::ModelConfig config_;
  const AttentionDims dims_;
  const DType dtype_;
  device::Accountant accountant_{kGiB};
  const kernels::Context context_{};
  kernels::HostOps ops_{context_};
  KvPool pool_;
  experts::SequenceId ids_ = 0;
  PrefixCache cache_;
};

struct Counts {
  std::size_t full = 0, parts = 0, of_running = 0, moved = 0, evicted = 0, refused = 0, grown = 0;
};

// Random requests against one cache. `model`: null where the pool's last block is short.
class Requests {
 public:
  Requests(Bench& bench, Model* model, std::size_t positions, std::mt19937_64& random, Counts& counts)
      : bench_(bench), model_(model), positions_(positions), random_(random), counts_(counts) {}

  void turn() {
    const auto one = any();
    switch (random_() % 7) {
      case 0:
      case 1:
        return begin();
      case 2:
      case 3:
        return one == bench_.live.end() ? begin() : end(one);
      case 4:
        if (one != bench_.live.end()) grow(*one);
        return;
      default:
        if (one != bench_.live.end()) compute(*one);
    }
  }

  void end_all() {
    while (!bench_.live.empty()) end(bench_.live.begin());
  }

  void check() {
    for (Bench::Live& one : bench_.live) bench_.check_rows(one);
    const KvUse use = bench_.cache().use();
    EXPECT_EQ(use.free + use.used + use.cached, bench_.pool().blocks());
    if (model_ == nullptr) return;
    EXPECT_EQ(use.free, model_->free());
    EXPECT_EQ(use.used, model_->used());
    EXPECT_EQ(use.cached, model_->idle());
    for (Text text : model_->texts()) {
      text.push_back(7);  // the last one is computed
      EXPECT_EQ(bench_.cache().find(text), text.size() - 1);
    }
    for (int i = 0; i < 5; ++i) {
      const Text text = random_text();
      EXPECT_EQ(bench_.cache().find(text), model_->find(text));
    }
  }

 private:
  using At = std::list<Bench::Live>::iterator;

  At any() {
    return bench_.live.empty()
               ? bench_.live.end()
               : std::next(bench_.live.begin(), static_cast<std::ptrdiff_t>(random_() % bench_.live.size()));
  }

  // Goes on from a cut of an earlier text as often as not.
  Text random_text() {
    Text text;
    if (!texts_.empty() && random_() % 4 != 0) {
      const Text& earlier = texts_[random_() % texts_.size()];
      const std::size_t from_end = std::min<std::size_t>(earlier.size(), random_() % 6);
      text = first_of(earlier,
                      random_() % 3 == 0 ? random_() % (earlier.size() + 1) : earlier.size() - from_end);
    }
    const std::size_t more = random_() % 3 == 0 ? random_() % 70 : random_() % 8;
    for (std::size_t i = 0; i < more; ++i) text.push_back(random_() % 8 == 0 ? 1 + random_() % 2 : 0);
    if (text.empty()) text.push_back(0);
    if (text.size() > positions_) text.resize(positions_);
    return text;
  }

  void begin() {
    const Text prompt = random_text();
    const std::size_t positions =
        std::min(positions_, prompt.size() + (random_() % 2 == 0 ? 0 : random_() % 60));
    const bool reuse = random_() % 8 != 0;
    const std::size_t found = reuse ? bench_.cache().find(prompt) : 0;
    const KvUse before = bench_.cache().use();
    auto sequence = bench_.cache().begin(prompt, positions, reuse);
    bool moved = false;
    const int id = ids_++;
    if (model_ != nullptr) {
      ASSERT_EQ(sequence != nullptr, model_->begin(id, prompt, positions, reuse, moved));
    }
    if (sequence == nullptr) {
      ++counts_.refused;
      const KvUse after = bench_.cache().use();
      EXPECT_EQ(after.free, before.free);
      EXPECT_EQ(after.cached, before.cached);
      return;
    }
    if (model_ != nullptr) {
      EXPECT_EQ(sequence->length(), found);
      counts_.of_running += runs(first_of(prompt, found)) ? 1 : 0;
    }
    EXPECT_LE(sequence->length(), found);
    EXPECT_EQ(sequence->positions(), positions);
    counts_.full += sequence->length() / kCacheBlock;
    counts_.parts += sequence->length() % kCacheBlock != 0 ? 1 : 0;
    counts_.moved += moved ? 1 : 0;
    bench_.live.push_back({id, std::move(sequence), prompt, random_() % 8 != 0});
    texts_.push_back(prompt);
  }

  bool runs(const Text& beginning) const {
    return !beginning.empty() && std::ranges::any_of(bench_.live, [&](const Bench::Live& one) {
      return one.sequence->shared_tokens() >= beginning.size() && is_beginning(beginning, one.text);
    });
  }

  void compute(Bench::Live& one) {
    Sequence& sequence = *one.sequence;
    const std::size_t room = sequence.positions() - sequence.length();
    const std::size_t count = random_() % 2 == 0 ? room : std::min<std::size_t>(room, 1 + random_() % 8);
    while (one.text.size() < sequence.length() + count) one.text.push_back(random_() % 3);
    bench_.compute(one, count);
    if (one.shares && random_() % 3 != 0) share(one);
  }

  void share(Bench::Live& one) {
    bench_.cache().share(*one.sequence, one.text);
    if (model_ != nullptr) model_->share(one.id, first_of(one.text, one.sequence->length()));
    texts_.push_back(one.text);
  }

  void grow(Bench::Live& one) {
    const std::size_t positions = std::min(positions_, one.sequence->positions() + random_() % 80);
    const bool grown = bench_.cache().grow(*one.sequence, positions);
    if (model_ != nullptr) {
      EXPECT_EQ(grown, model_->grow(one.id, positions));
    }
    if (grown) {
      EXPECT_EQ(one.sequence->positions(), positions);
    }
    counts_.grown += grown ? 1 : 0;
  }

  void end(At one) {
    if (one->shares && random_() % 2 == 0) share(*one);
    const int id = one->id;
    bench_.live.erase(one);
    if (model_ != nullptr) model_->end(id);
  }

  Bench& bench_;
  Model* const model_;
  const std::size_t positions_;
  std::mt19937_64& random_;
  Counts& counts_;
  int ids_ = 0;
  std::vector<Text> texts_;
};

constexpr std::pair<model::AttentionKind, DType> kKinds[] = {{model::AttentionKind::kGqa, DType::kBF16},
                                                             {model::AttentionKind::kGqa, DType::kI8},
                                                             {model::AttentionKind::kMla, DType::kF32},
                                                             {model::AttentionKind::kMla, DType::kI8}};

TEST(PrefixCache, IsAListOfTextsThatIsSearchedInFull) {
  Counts counts;
  const std::uint64_t first = drawn_seed();
  std::cout << "SLUICE_TEST_SEED=" << first << '\n';
  for (std::uint64_t seed = first; seed < first + 24; ++seed) {
    SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto [kind, dtype] = kKinds[random() % std::size(kKinds)];
    const std::size_t blocks = 4 + random() % 12;
    const std::size_t positions = std::min<std::size_t>(blocks * kCacheBlock, 100 + random() % 60);
    Bench bench(kind, dtype, blocks * kCacheBlock, positions);
    Model model(blocks);
    Requests requests(bench, &model, positions, random, counts);
    for (int turn = 0; turn < 300; ++turn) {
      requests.turn();
      requests.check();
      if (::testing::Test::HasFailure()) return;
    }
    requests.end_all();
    requests.check();
    EXPECT_EQ(bench.cache().use().used, 0u);
    counts.evicted += model.evicted();
  }
  EXPECT_GT(counts.full, 50u);
  EXPECT_GT(counts.parts, 200u);
  EXPECT_GT(counts.of_running, 50u);
  EXPECT_GT(counts.moved, 5u);
  EXPECT_GT(counts.evicted, 100u);
  EXPECT_GT(counts.refused, 20u);
  EXPECT_GT(counts.grown, 100u);
}

// The last block may be shorter than others: then it is the last of a sequence, or none.
TEST(PrefixCache, RowsAreRightBesideAShortLastBlock) {
  Counts counts;
  const std::uint64_t first = drawn_seed();
  std::cout << "SLUICE_TEST_SEED=" << first << '\n';
  for (std::uint64_t seed = first; seed < first + 24; ++seed) {
    SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto [kind, dtype] = kKinds[random() % std::size(kKinds)];
    const std::size_t rows = KvPool::rows_for(1 + random() % 3, 70 + random() % 60);
    const std::size_t positions = std::min<std::size_t>(rows, 130);
    Bench bench(kind, dtype, rows, positions);
    Requests requests(bench, nullptr, positions, random, counts);
    for (int turn = 0; turn < 300; ++turn) {
      requests.turn();
      requests.check();
      if (::testing::Test::HasFailure()) return;
    }
    requests.end_all();
    EXPECT_EQ(bench.cache().use().used, 0u);
    // Alone, a sequence has all of it.
    EXPECT_EQ(bench.cache().most_positions(), positions);
    EXPECT_NE(bench.cache().begin(Text(positions, 3), positions), nullptr);
  }
  EXPECT_GT(counts.full, 50u);
  EXPECT_GT(counts.parts, 200u);
  EXPECT_GT(counts.grown, 100u);
}

// A prompt again, with a pool that has room for one sequence alone: no block is computed twice.
TEST(PrefixCache, AFullPoolGivesASequenceTheBlockItself) {
  for (const std::size_t rows : {std::size_t{96}, std::size_t{75}}) {
    Bench bench(model::AttentionKind::kGqa, DType::kBF16, rows, rows);
    Text text;
    for (std::size_t i = 0; i < rows; ++i) text.push_back(static_cast<tokenizer::TokenId>(i));
    for (const std::size_t agreeing : {rows - 1, std::size_t{50}, std::size_t{40}, std::size_t{7}}) {
      Bench::Live one{0, bench.cache().begin(text, rows), text, true};
      bench.compute(one, rows - one.sequence->length());
      bench.cache().share(*one.sequence, text);
      one.sequence.reset();
      for (std::size_t i = agreeing; i < rows; ++i) text[i] += 1000;
      Bench::Live again{1, bench.cache().begin(text, rows), text, true};
      ASSERT_NE(again.sequence, nullptr);
      EXPECT_EQ(again.sequence->length(), agreeing);
      bench.check_rows(again);
      EXPECT_EQ(bench.cache().use().used, blocks_for(rows));
    }
  }
}

// Two that compute the same go on with one set of full blocks.
TEST(PrefixCache, SequencesThatComputedTheSameShareTheirBlocks) {
  Bench bench(model::AttentionKind::kGqa, DType::kF32, 8 * kCacheBlock, 8 * kCacheBlock);
  const Text text(70, 4);
  Bench::Live first{0, bench.cache().begin(text, 96), text, true};
  Bench::Live second{1, bench.cache().begin(text, 96), text, true};
  for (Bench::Live* one : {&first, &second}) bench.compute(*one, 70);
  EXPECT_EQ(bench.cache().use().used, 6u);
  for (Bench::Live* one : {&first, &second}) bench.cache().share(*one->sequence, text);
  EXPECT_EQ(bench.cache().use().used, 4u);  // each has its third
  first.sequence.reset();
  bench.check_rows(second);
  second.sequence.reset();
  EXPECT_EQ(bench.cache().use().used, 0u);
  EXPECT_EQ(bench.cache().use().cached, 3u);
}

TEST(PrefixCache, AnEmptySequenceTakesWhatIsOnlyCached) {
  Bench bench(model::AttentionKind::kGqa, DType::kF32, 4 * kCacheBlock, 4 * kCacheBlock);
  const Text text(100, 4);
  Bench::Live one{0, bench.cache().begin(text, 100), text, true};
  bench.compute(one, 100);
  bench.cache().share(*one.sequence, text);
  EXPECT_THROW(bench.cache().begin_empty(1), Error);
  one.sequence.reset();
  EXPECT_EQ(bench.cache().find(text), 99u);
  const auto empty = bench.cache().begin_empty(2 * kCacheBlock);
  EXPECT_EQ(empty->length(), 0u);
  EXPECT_EQ(bench.cache().find(text), 64u);
  EXPECT_THROW(bench.cache().begin_empty(3 * kCacheBlock), Error);
  EXPECT_EQ(bench.cache().find(text), 64u);
}

TEST(PrefixCacheDeath, WhatOthersReadIsNotCutOff) {
  Bench bench(model::AttentionKind::kGqa, DType::kF32, 4 * kCacheBlock, 4 * kCacheBlock);
  const Text text(50, 4);
  Bench::Live one{0, bench.cache().begin(text, 60), text, true};
  bench.compute(one, 50);
  one.sequence->cut(45);
  bench.compute(one, 5);
  bench.cache().share(*one.sequence, text);
  one.sequence->cut(50);
  EXPECT_DEATH(one.sequence->cut(49), "others read");
  EXPECT_DEATH(one.sequence->clear(), "others read");
}

}  // namespace
}  // namespace sluice::engine
