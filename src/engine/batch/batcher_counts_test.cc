// What a batch reads: the union of what its answers use, no more and no less, as their routing foretells.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/batch/batch_testing.h"
#include "engine/watch/event_account.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"

namespace sluice::engine {
namespace {

using Layer = std::set<std::uint16_t>;  // experts

// The experts of each sparse layer of each decoded token.
class DecodeRouting final : public RoutingObserver {
 public:
  std::vector<std::vector<Layer>> tokens;
  void on_step(const Step& step) override {
    decodes_ = step.kind() == StepKind::kDecode;
    if (decodes_) tokens.emplace_back();
  }
  void on_routing(const experts::ScoresView&, const experts::Routing& routing) override {
    if (!decodes_) return;
    Layer& layer = tokens.back().emplace_back();
    for (const experts::Choice& choice : routing.choices) layer.insert(choice.expert);
  }

 private:
  bool decodes_ = false;
};

// What each expert takes of the disk.
class ReadSizes final : public EventAccount {
 public:
  std::map<experts::ExpertId, Bytes> bytes;
  void on_event(const Step&, const EventCosts& costs) override {
    for (const fetch::ExpertRead& read : costs.reads) bytes[read.id] = read.bytes;
  }
};

class BatcherCounts : public BatcherFixture {
 protected:
  // Nothing stays in memory.
  static EngineOptions options(std::size_t parallel) {
    EngineOptions options = batch_options(parallel, 160);
    options.cache = "none";
    return options;
  }
  // By steps of the engine, without a batcher.
  ReadSizes read_sizes() {
    make(options(1));
    ReadSizes sizes;
    for (std::size_t salt = 0; sizes.bytes.size() < model_.model.experts.size() && salt < 100; ++salt) {
      const auto sequence = engine_->new_sequence();
      const std::vector<tokenizer::TokenId> tokens = prompt_of(150, salt);
      const SequenceSpan span{sequence.get(), 0, tokens.size()};
      engine_->step({tokens, {&span, 1}, std::nullopt, &sizes}, {[](std::size_t) { return false; }, nullptr});
    }
    return sizes;
  }
  BatchRequest any_request(std::size_t i) const {
    return request_of(prompt_of(35 + i % 2, 7 * i), 1 + kDecoded);
  }

  static constexpr std::size_t kDecoded = 9;  // tokens behind the first
};

TEST_F(BatcherCounts, ABatchReadsTheUnionThatRecordedRoutingForetells) {
  constexpr std::size_t kRequests = 16;
  ReadSizes sizes = read_sizes();
  rules_.decode_share = 0;  // all prompts first: then every pass has a token of each
  std::vector<std::vector<std::vector<Layer>>> recorded;
  for (std::size_t i = 0; i < kRequests; ++i) {
    make(options(1));
    DecodeRouting routing;
    engine_->observe(&routing);
    submit(any_request(i));
    run();
    ASSERT_EQ(routing.tokens.size(), kDecoded);
    recorded.push_back(routing.tokens);
  }
  double alone = 0;
  for (const std::size_t batch : {1u, 4u, 16u}) {
    make(options(batch));
    clients_.clear();
    for (std::size_t i = 0; i < kRequests; ++i) submit(any_request(i));
    run();
    std::uint64_t united = 0, demand = 0;
    Bytes bytes = 0;
    for (std::size_t first = 0; first < kRequests; first += batch)
      for (std::size_t t = 0; t < kDecoded; ++t)
        for (std::size_t l = 0; l < recorded[0][0].size(); ++l) {
          Layer all;
          for (std::size_t i = first; i < first + batch; ++i) {
            all.insert(recorded[i][t][l].begin(), recorded[i][t][l].end());
            demand += recorded[i][t][l].size();
          }
          united += all.size();
          for (const std::uint16_t expert : all)
            bytes += sizes.bytes.at({static_cast<std::uint16_t>(l), expert});
        }
    const ExpertStatistics& decode = engine_->statistics().decode;
    EXPECT_EQ(decode.steps, kDecoded * kRequests / batch);
    EXPECT_EQ(decode.accesses, united);
    EXPECT_EQ(decode.misses, united);
    EXPECT_EQ(decode.bytes_read, bytes);
    double shares = 0;
    std::uint64_t demanded = 0;
    for (const KeepingClient& client : clients_) {
      shares += client.end->statistics.bytes_read;
      demanded += client.end->statistics.demand;
    }
    EXPECT_NEAR(shares, static_cast<double>(engine_->statistics().total().bytes_read), 1e-6 * shares);
    EXPECT_GT(demanded, demand);  // prompts, too
    const double each = static_cast<double>(decode.bytes_read) / (kRequests * kDecoded);
    std::cout << "batch " << batch << ": " << each << " bytes a token\n";
    if (batch == 1) alone = each;
    if (batch > 1) {
      EXPECT_LT(each, alone);
    }
  }
}

// Two tokens that use the same experts pay half of each; the share of one who uses others is all of these.
TEST_F(BatcherCounts, EachPaysForWhatItUses) {
  make(options(3));
  for (const std::size_t salt : {0u, 0u, 5u}) {
    BatchRequest request = request_of(prompt_of(40, salt), 8);
    request.cache_prompt = false;
    submit(request);
  }
  run();
  const auto& a = clients_[0].end->statistics;
  const auto& b = clients_[1].end->statistics;
  const auto& c = clients_[2].end->statistics;
  EXPECT_EQ(clients_[0].tokens, clients_[1].tokens);
  EXPECT_NEAR(a.bytes_read, b.bytes_read, 1e-9 * a.bytes_read);
  EXPECT_GT(c.bytes_read, a.bytes_read);
  EXPECT_EQ(a.demand, b.demand);
}

}  // namespace
}  // namespace sluice::engine
