// Prefixes are found, shared, copied and evicted as a list of texts says that is searched in full, and a
// sequence's rows are what its own tokens wrote, even where others hold its blocks: for requests drawn at
// random.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/known_texts_testing.h"
#include "engine/session/prefix_bench_testing.h"
#include "engine/session/prefix_cache.h"

namespace sluice::engine {
namespace {

using kernels::kCacheBlock;
using testing::first_of;
using testing::is_beginning;
using testing::KnownTexts;
using testing::PrefixBench;
using testing::Text;

std::uint64_t drawn_seed() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

struct Counts {
  std::size_t full = 0, parts = 0, of_running = 0, moved = 0, evicted = 0, refused = 0, grown = 0;
};

// Random requests against one cache. `model`: null where the pool's last block is short.
class Requests {
 public:
  Requests(PrefixBench& bench, KnownTexts* model, std::size_t positions, std::mt19937_64& random,
           Counts& counts)
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
    for (PrefixBench::Live& one : bench_.live) bench_.check_rows(one);
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
  using At = std::list<PrefixBench::Live>::iterator;

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
    return !beginning.empty() && std::ranges::any_of(bench_.live, [&](const PrefixBench::Live& one) {
      return one.sequence->shared_tokens() >= beginning.size() && is_beginning(beginning, one.text);
    });
  }

  void compute(PrefixBench::Live& one) {
    Sequence& sequence = *one.sequence;
    const std::size_t room = sequence.positions() - sequence.length();
    const std::size_t count = random_() % 2 == 0 ? room : std::min<std::size_t>(room, 1 + random_() % 8);
    while (one.text.size() < sequence.length() + count) one.text.push_back(random_() % 3);
    bench_.compute(one, count);
    if (one.shares && random_() % 3 != 0) share(one);
  }

  void share(PrefixBench::Live& one) {
    bench_.cache().share(*one.sequence, one.text);
    if (model_ != nullptr) model_->share(one.id, first_of(one.text, one.sequence->length()));
    texts_.push_back(one.text);
  }

  void grow(PrefixBench::Live& one) {
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

  PrefixBench& bench_;
  KnownTexts* const model_;
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
    PrefixBench bench(kind, dtype, blocks * kCacheBlock, positions);
    KnownTexts model(blocks);
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
    PrefixBench bench(kind, dtype, rows, positions);
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

}  // namespace
}  // namespace sluice::engine
