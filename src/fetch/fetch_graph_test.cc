// The task graph against its rules, in random orders of arrival.
#include "fetch/fetch_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "base/machine/thread_pool.h"
#include "fetch/fetch_options.h"
#include "fetch/memory/expert_store_fixture.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {
namespace {

class FetchGraphTest : public testing::ExpertStoreTest {
 protected:
  // A request for all of an expert, as words if `words`. Its buffers are only named, never touched.
  FetchRequest request_of(experts::ExpertId id, bool words) {
    FetchRequest request{.id = id, .layout = &store_->layout(id), .base = &byte_, .rest = &byte_};
    request.view = words ? &byte_ : nullptr;
    request.read_base = request.read_rest = true;
    return request;
  }
  std::byte byte_{};
};

TEST_F(FetchGraphTest, EachOperationIsDoneOnceAfterWhatItNeeds) {
  const std::uint64_t seed = 20261124;
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  open(packed("zstd"), 3, 2);
  std::size_t merged_at_once = 0, later_words = 0, given_up = 0;
  FetchGraph graph;
  for (int round = 0; round < 400; ++round) {
    const bool words = random() % 2 == 0;
    FetchRequest request = request_of({0, static_cast<std::uint16_t>(random() % 6)}, words);
    const std::size_t pieces = request.layout->pieces.size();
    graph.begin(request);
    std::uint64_t turn = 100;
    for (std::uint16_t p = 0; p < pieces; ++p) graph.add(p, turn);
    std::vector<std::uint32_t> runs;
    for (const bool rest : {true, false})
      for (std::uint16_t p = 0; p < pieces; ++p) graph.name_reads(p, rest, runs);
    EXPECT_EQ(runs.size(), request.layout->base.runs.size() + request.layout->rest.runs.size());
    std::ranges::shuffle(runs, random);
    FetchGraph::Ready ready;
    graph.settle(ready);
    EXPECT_TRUE(ready.empty());
    std::vector<bool> checked(pieces), done(200);
    const bool gives_up = random() % 5 == 0;
    std::size_t steps = 0;
    bool set = words;
    while (!graph.complete() || (!set && random() % 2 == 0)) {
      if (!set && random() % 8 == 0) {  // its words are wanted after all
        request.view = &byte_;
        graph.add_words(turn, ready);
        set = true;
        ++later_words;
        continue;
      }
      if (gives_up && ++steps > 6) {
        graph.cancel_reads(static_cast<std::uint32_t>(runs.size()));
        runs.clear();
        graph.give_up();
        ++given_up;
        break;
      }
      if (!runs.empty() && (ready.empty() || random() % 2 == 0)) {
        graph.arrived(runs.back(), ready);
        runs.pop_back();
        continue;
      }
      if (ready.empty()) continue;
      std::swap(ready.back(), ready[random() % ready.size()]);
      const std::uint32_t index = ready.back();
      ready.pop_back();
      const FetchGraph::Operation op = graph.take(index);
      ASSERT_FALSE(done[index]);
      done[index] = true;
      if (op.kind == FetchGraph::Kind::kMerge) {
        EXPECT_TRUE(checked[op.piece]);
      }
      const bool merges = op.kind == FetchGraph::Kind::kDecode && set && graph.base_is_ready(op.piece);
      merged_at_once += merges ? 1 : 0;
      if (op.kind == FetchGraph::Kind::kCheck) checked[op.piece] = true;
      graph.finish(index, merges, ready);
    }
    EXPECT_TRUE(graph.complete());
  }
  for (const std::size_t count : {merged_at_once, later_words, given_up}) EXPECT_GT(count, 20u);
}

}  // namespace
}  // namespace sluice::fetch
