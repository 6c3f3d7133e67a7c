// Decisions for two tiers of memory allocate nothing once they have seen the largest layer: they stand in the
// path of every layer of every token.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <random>

#include "experts/cache/score_window.h"
#include "experts/cache/workload/workload_ema.h"
#include "experts/cache/workload/workload_window.h"
#include "experts/placement/balancer.h"
#include "experts/placement/beam_split.h"
#include "experts/placement/greedy_split.h"
#include "experts/placement/ratio_prefix_split.h"
#include "experts/placement/stall_split.h"
#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/residual.h"
#include "experts/prefetch/top_score_queue.h"
#include "experts/prefetch/workload_forecast.h"
#include "experts/routing/smoe_choice.h"
#include "experts/schedule/hybrid_timeline.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t bytes) {
  allocations += 1;
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sluice::experts {
namespace {

constexpr std::uint32_t kExperts = 128, kTokens = 16, kTopK = 8, kWidth = 12;

// One layer of a step, as far as any decision asks for it.
struct Step {
  std::vector<std::uint32_t> tokens;
  std::vector<double> host, device, transfer, scores, inputs, means;
  std::vector<std::uint8_t> resident, shielded;
  std::vector<Reach> reach;  // residents are the device's, others the host's or the disk's
  std::vector<std::int64_t> last_use;
  std::uint32_t slots = kAnySlots;

  explicit Step(std::mt19937_64& random)
      : transfer(kExperts), resident(kExperts), shielded(kExperts), reach(kExperts), last_use(kExperts) {
    const auto share = [&] { return 1e-3 + std::generate_canonical<double, 53>(random); };
    for (std::uint32_t e = 0; e < kExperts; ++e) {
      tokens.push_back(static_cast<std::uint32_t>(1 + random() % 30));  // all are active: the largest layer
      host.push_back(.06 + .09 * tokens.back());
      device.push_back(random() % 2 == 0 ? .03 : .54);
      means.push_back(share());
    }
    for (std::uint32_t i = 0; i < kTokens * kExperts; ++i) scores.push_back(share());
    for (std::uint32_t i = 0; i < kTokens * kWidth; ++i) inputs.push_back(share());
    shuffle(random);
  }
  // The same experts with other residents.
  void shuffle(std::mt19937_64& random) {
    std::ranges::fill(resident, std::uint8_t{0});
    std::fill_n(resident.begin(), kExperts / 2, std::uint8_t{1});
    std::shuffle(resident.begin(), resident.end(), random);
    for (std::uint32_t e = 0; e < kExperts; ++e) {
      transfer[e] = resident[e] != 0 ? 0 : .54;
      reach[e] = resident[e] != 0 ? Reach::kDevice : e % 2 == 0 ? Reach::kHost : Reach::kMissing;
    }
    for (std::uint8_t& flag : shielded) flag = random() % 8 == 0;
    for (std::int64_t& time : last_use) time = static_cast<std::int64_t>(random() % 100);
    slots = random() % 2 == 0 ? kAnySlots : static_cast<std::uint32_t>(random() % 40);
  }
  SplitCosts costs() const { return {tokens, host, device, resident, slots}; }
};

class NothingHeld final : public ResidencyView {
 public:
  Parts parts(ExpertId) const override { return {}; }
};

struct Decision {
  const char* name;
  std::function<double(const Step&)> make;  // returns anything that depends on the decision
};

std::vector<Decision> decisions() {
  const auto split = [](const char* name, auto method) {
    return Decision{name,
                    [method, on_device = std::vector<std::uint8_t>(kExperts)](const Step& step) mutable {
                      return method.split(step.costs(), on_device).makespan();
                    }};
  };
  std::mt19937_64 random(1);
  std::vector<double> gate(kExperts * kWidth), residual(kWidth, .5);
  for (double& weight : gate) weight = std::generate_canonical<double, 53>(random);
  return {
      split("greedy", GreedySplit()),
      split("beam", BeamSplit(4)),
      split("ratio-prefix", RatioPrefixSplit()),
      {"balance",
       [balancer = Balancer()](const Step& step) mutable {
         return balancer.balance(BalanceRule::kLookAhead, step.tokens, step.host, .54).makespan();
       }},
      {"stall",
       [stall = StallSplit(), on_device = std::vector<std::uint8_t>(kExperts)](const Step& step) mutable {
         return stall.split({step.tokens, step.resident, step.host, step.device, step.transfer}, on_device)
             .host;
       }},
      {"smoe",
       [choice = SmoeChoice()](const Step& step) mutable {
         choice.choose({kTokens, kExperts, kTopK, step.scores, step.reach, Reach::kDevice}, {});
         return static_cast<double>(choice.misses().size());
       }},
      {"score window",
       [window = ScoreWindow(kExperts)](const Step& step) mutable {
         window.on_iteration(step.means);
         return static_cast<double>(window.victim(step.resident, step.shielded, step.last_use).value_or(0));
       }},
      {"workload window",
       [window = WorkloadWindow(kExperts, {.steps = 2})](const Step& step) mutable {
         window.add(step.tokens);
         return static_cast<double>(window.end_step(step.resident).size());
       }},
      {"workload ema",
       [ema = WorkloadEma(kExperts, {})](const Step& step) mutable {
         ema.add(step.tokens);
         return static_cast<double>(ema.end_step(step.resident).size());
       }},
      {"top-score queue",
       [queue = TopScoreQueue()](const Step& step) mutable {
         queue.predict({kTokens, kExperts, kTopK, step.scores}, .25, true, step.resident);
         return static_cast<double>(queue.order().size());
       }},
      {"residual prediction",
       [prediction = ResidualPrediction(), forecast = WorkloadForecast(), gate,
        residual](const Step& step) mutable {
         prediction.predict(kTokens, kExperts, step.inputs, residual, gate);
         forecast.predict({kTokens, kExperts, kTopK, prediction.logits(), prediction.scores()});
         return static_cast<double>(forecast.order(step.resident, 4).size());
       }},
      {"forecast prefetch",
       [prefetch = std::shared_ptr(make_raw_prefetch({})), nothing = NothingHeld(),
        scores = std::vector<float>(), requests = std::vector<PartRequest>()](const Step& step) mutable {
         scores.assign(step.scores.begin(), step.scores.end());
         const ScoresView next{.layer = 1, .experts = kExperts, .tokens = kTokens, .scores = scores};
         requests.clear();
         prefetch->propose({.layers = 2, .residency = &nothing, .next = &next, .top_k = kTopK}, requests);
         return static_cast<double>(requests.size());
       }},
      {"timeline",
       [timeline = HybridTimeline(), layer = std::uint16_t{0}](const Step& step) mutable {
         timeline.decide({.sync = .01, .policy = .01, .launch = .01, .predict = .02, .next_gate = .1});
         const LinkLoad loads[] = {{{layer, 1}, .54, .03}, {{layer, 2}, .54, .03}, {{layer, 3}, .54, .03}};
         ++layer;
         const LinkTransfer prefetches[] = {{{layer, 2}, .54}, {{layer, 9}, .54}};
         timeline.run({.shared = .1,
                       .host = step.host,
                       .rows = .01,
                       .resident = step.device,
                       .loads = loads,
                       .prefetches = prefetches});
         return timeline.now();
       }},
  };
}

TEST(DecisionMemory, DecisionsAllocateNothingOnceTheyHaveSeenTheLargestLayer) {
  std::mt19937_64 random(2);
  for (const Decision& decision : decisions()) {
    Step step(random);
    double sum = 0;
    for (int warm = 0; warm < 3; ++warm) sum += decision.make(step);
    std::size_t calls = 0;
    for (int i = 0; i < 200; ++i) {
      step.shuffle(random);
      const std::size_t before = allocations;
      sum += decision.make(step);
      calls += allocations - before;
    }
    EXPECT_EQ(calls, 0u) << decision.name << ", which decided " << sum;
  }
}

// The test itself sees an allocation.
TEST(DecisionMemory, AFreshObjectAllocates) {
  std::mt19937_64 random(3);
  const Step step(random);
  std::vector<std::uint8_t> on_device(kExperts);
  const std::size_t before = allocations;
  GreedySplit().split(step.costs(), on_device);
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace sluice::experts
