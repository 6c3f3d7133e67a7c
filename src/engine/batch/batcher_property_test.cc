// Requests that come, share prefixes and passes, stop, are cancelled and meet broken reads at random: each
// gets the tokens and the logits that it gets alone, whatever its neighbours, chunk, share of time, memory.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/accountant.h"
#include "engine/batch/batch_testing.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"
#include "model/golden_models.h"

namespace sluice::engine {
namespace {

using tokenizer::TokenId;

constexpr std::size_t kPositions = 160;

// A request, when it comes and goes, and what it gets alone.
struct Arrival {
  BatchRequest request;
  std::size_t turn = 0, cancelled = SIZE_MAX;  // turns of the batcher
  std::size_t stop_after = SIZE_MAX;           // tokens
  AloneAnswer alone = {};
};

class Arrivals {
 public:
  Arrivals(const model::ModelConfig& config, std::mt19937_64& random) : config_(config), random_(random) {}

  std::vector<Arrival> draw() {
    std::vector<Arrival> all(4 + random_() % 14);
    std::size_t turn = 0;
    for (Arrival& arrival : all) {
      turn += random_() % 3 == 0 ? random_() % 30 : 0;
      arrival.turn = turn;
      fill(arrival.request);
      if (one_in(6)) arrival.cancelled = turn + random_() % 60;
      if (one_in(6)) arrival.stop_after = 1 + random_() % 6;
      seen_.push_back(arrival.request.prompt);
    }
    return all;
  }

 private:
  bool one_in(std::size_t n) { return random_() % n == 0; }
  TokenId any_token() { return static_cast<TokenId>(random_() % config_.vocab); }

  std::vector<TokenId> prompt() {
    std::vector<TokenId> tokens;
    if (!seen_.empty() && one_in(2)) {  // begins as an earlier one, or is the same
      tokens = seen_[random_() % seen_.size()];
      if (!one_in(3)) tokens.resize(1 + random_() % tokens.size());
      if (one_in(3)) return tokens;
    }
    const std::size_t most = config_.has_encoder() ? 40 : 100;
    const std::size_t count = one_in(3) ? random_() % 70 : random_() % 12;
    while (tokens.empty() || (tokens.size() < most && tokens.size() < count)) tokens.push_back(any_token());
    return tokens;
  }

  void fill(BatchRequest& request) {
    request.prompt = prompt();
    request.max_tokens = random_() % 14;
    if (one_in(8)) request.max_tokens.reset();
    request.ignore_eos = one_in(2);
    for (std::size_t i = random_() % 3; i > 0; --i) request.ends.push_back(any_token());
    request.cache_prompt = !one_in(5);
    if (one_in(3)) request.logprobs = random_() % 4;
    if (request.logprobs && !config_.has_encoder() && one_in(2))
      request.prompt_logprobs = one_in(2) ? 1 : 1 + random_() % request.prompt.size();
    SamplerConfig& sampler = request.sampler;
    if (one_in(2)) sampler.temperature = 1.5;
    if (one_in(4)) sampler.top_p = 0.9;
    if (one_in(4)) sampler.repetition_penalty = 1.25;
    if (one_in(4)) sampler.frequency_penalty = 0.5;
    if (one_in(4)) sampler.bias = {{any_token(), 2}, {any_token(), -100}};
    sampler.seed = random_();
  }

  const model::ModelConfig& config_;
  std::mt19937_64& random_;
  std::vector<std::vector<TokenId>> seen_;
};

struct BatchSetting {
  std::size_t parallel = 1, chunk = 64;
  double decode_share = 0.5, cache_share = 1;
  bool faults = false, small_pool = false;
  std::size_t stretch = 512;
  bool prompts_first = false;

  std::string name() const {
    return "parallel " + std::to_string(parallel) + ", chunk " + std::to_string(chunk) + ", decode share " +
           std::to_string(decode_share) + ", cache " + std::to_string(cache_share) +
           (faults ? ", broken reads" : "") + (small_pool ? ", small pool" : "") +
           (prompts_first ? ", prompts first" : "");
  }
};

// What all runs together have met, so that no case is tested by name alone.
struct Met {
  std::size_t shared = 0, found = 0, cancelled = 0, cancelled_late = 0, failed = 0, repeated = 0, stalled = 0,
              ends = 0, stops = 0, contexts = 0, prompt_logprobs = 0;
};

class Run {
 public:
  Run(const BatchModel& model, const BatchSetting& setting, std::span<const Arrival> arrivals,
      std::mt19937_64& random, Met& met)
      : setting_(setting), arrivals_(arrivals), random_(random), met_(met), clients_(arrivals.size()) {
    EngineOptions options = batch_options(setting.parallel, setting.chunk);
    options.positions = kPositions;
    options.cache_bytes = model.cache_bytes(setting.cache_share);
    options.less_cache_will_do = true;
    if (setting.small_pool) options.kv_tokens = kPositions + 32;
    if (random() % 2 == 0) options.prefetch = "stream";
    faults_.put_into(options);
    engine_ = model.engine(options, 1 + random() % 5);
    clock_.tick = std::chrono::nanoseconds(1 + random() % 1000);
  }

  void run() {
    const device::Accountant& accountant = engine_->report().accountant;
    const Bytes kv = accountant.used(device::Account::kKv);
    const Bytes activations = accountant.used(device::Account::kActivations);
    // Some reads fail alone, and some with those that follow, so that passes fail again.
    if (setting_.faults)
      faults_.set([this](const DiskRead&) {
        if (random_() % 200 == 0) broken_ = random_() % 2 == 0 ? 1 : random_() % 60;
        return broken_ > 0 && broken_-- > 0;
      });
    const BatchRules rules{.parallel = setting_.parallel,
                           .decode_share = setting_.decode_share,
                           .prompts_first = setting_.prompts_first,
                           .stretch = setting_.stretch,
                           .now = clock_.function()};
    Batcher batcher(*engine_, rules);
    std::vector<RequestId> ids(arrivals_.size());
    std::size_t turn = 0, next = 0;
    for (bool more = true; more || next < arrivals_.size(); ++turn) {
      for (; next < arrivals_.size() && arrivals_[next].turn <= turn; ++next) {
        clients_[next].stop_after = arrivals_[next].stop_after;
        ids[next] = batcher.submit(arrivals_[next].request, clients_[next]);
      }
      for (std::size_t i = 0; i < next; ++i)
        if (arrivals_[i].cancelled == turn) batcher.cancel(ids[i]);
      more = batcher.advance();
      ASSERT_LT(turn, 100000u) << "it never ends";
    }
    EXPECT_FALSE(batcher.advance());
    faults_.set(nullptr);
    const BatchLoad load = batcher.load();
    EXPECT_EQ(load.waiting + load.prefilling + load.decoding + load.stalled, 0u);
    EXPECT_EQ(engine_->prefixes().use().used, 0u);
    EXPECT_EQ(accountant.used(device::Account::kKv), kv);
    EXPECT_EQ(accountant.used(device::Account::kActivations), activations);
    EXPECT_LE(accountant.peak(), *engine_->plan().memory);
    compare();
    expect_all_reads_are_shared();
  }

 private:
  void compare() {
    for (std::size_t i = 0; i < arrivals_.size() && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      const KeepingClient& client = clients_[i];
      ASSERT_EQ(client.ends, 1);
      compare(arrivals_[i], client);
      const RequestStatistics& count = client.end->statistics;
      met_.found += count.cached != 0 ? 1 : 0;
      met_.shared += count.companions > count.passes ? 1 : 0;
      met_.stalled += count.stalled_ms > 0 ? 1 : 0;
      EXPECT_EQ(count.hits + count.misses, count.accesses);
      EXPECT_LE(count.demand, count.accesses);
      EXPECT_EQ(count.generated, client.tokens.size());
      EXPECT_GE(count.queue_ms, 0);
      EXPECT_GE(count.prompt_ms, 0);
      EXPECT_GE(count.generated_ms, 0);
    }
  }

  void compare(const Arrival& arrival, const KeepingClient& client) {
    const AloneAnswer& alone = arrival.alone;
    const std::size_t all = std::min(alone.tokens.size(), arrival.stop_after), got = client.tokens.size();
    ASSERT_LE(got, all);
    for (std::size_t i = 0; i < got; ++i) {
      EXPECT_EQ(client.tokens[i], alone.tokens[i]) << i;
      EXPECT_EQ(client.logits[i], alone.logits[i]) << i;
      compare_logprobs(client.best[i], arrival, alone.rows.size() - alone.logits.size() + i);
    }
    met_.prompt_logprobs += client.prompt_best.size();
    for (std::size_t i = 0; i < client.prompt_best.size(); ++i)
      compare_logprobs(client.prompt_best[i], arrival, *arrival.request.prompt_logprobs - 1 + i);
    const BatchEnd& end = *client.end;
    if (end.error) {
      EXPECT_TRUE(setting_.faults) << end.error->what();
      EXPECT_EQ(end.error->kind(), ErrorKind::kIo) << end.error->what();
      ++met_.failed;
    } else if (end.reason == StopReason::kInterrupted) {
      EXPECT_NE(arrival.cancelled, SIZE_MAX);
      ++met_.cancelled;
      met_.cancelled_late += got > 0 ? 1 : 0;
    } else if (got < all) {  // it was the youngest of those that waited for room
      EXPECT_TRUE(setting_.small_pool && !arrival.request.max_tokens && end.reason == StopReason::kLength);
    } else {
      const bool stopped = got == arrival.stop_after && alone.tokens.size() >= got &&
                           !(alone.reason == StopReason::kEos && alone.tokens.size() == got);
      EXPECT_EQ(end.reason, stopped ? StopReason::kStopString : alone.reason);
      if (arrival.request.prompt_logprobs) {
        EXPECT_EQ(client.prompt_best.size(),
                  arrival.request.prompt.size() - *arrival.request.prompt_logprobs);
      }
      met_.ends += end.reason == StopReason::kEos ? 1 : 0;
      met_.stops += stopped ? 1 : 0;
      met_.contexts += end.reason == StopReason::kContext ? 1 : 0;
    }
  }

  // `row`: of the logits that the token was drawn from.
  static void compare_logprobs(const std::vector<TokenLogprob>& told, const Arrival& arrival,
                               std::size_t row) {
    if (!arrival.request.logprobs || arrival.alone.rows.size() <= row) return;
    std::vector<TokenLogprob> best;
    const double logprob =
        token_logprob(arrival.alone.rows[row], told[0].id, *arrival.request.logprobs, best);
    best.insert(best.begin(), {told[0].id, logprob});
    EXPECT_EQ(told, best);
  }

  void expect_all_reads_are_shared() {
    const fetch::ExpertCounters counters = engine_->report().experts.counters();
    const auto needed = static_cast<double>(counters.demand_bytes + counters.prefetch.used_bytes);
    double sum = 0;
    for (const KeepingClient& client : clients_) sum += client.end->statistics.bytes_read;
    EXPECT_NEAR(sum, needed, 1e-9 * needed);
    met_.repeated += faults_.failed;
  }

  const BatchSetting& setting_;
  std::span<const Arrival> arrivals_;
  std::mt19937_64& random_;
  Met& met_;
  Faults faults_;
  std::uint64_t broken_ = 0;  // so many of the next reads
  TurnedClock clock_;
  std::unique_ptr<Engine> engine_;
  std::deque<KeepingClient> clients_;
};

std::vector<BatchSetting> settings_for(bool encoder) {
  std::vector<BatchSetting> all;
  const std::array<double, 3> decode_shares = {0.5, 0, 1};
  std::size_t i = 0;
  for (const std::size_t parallel : {1, 2, 7, 16})
    for (const std::size_t chunk : {16, 64, 4096}) {
      const bool prompts_first = encoder ? parallel > 1 : i % 5 == 2;
      all.push_back({parallel, chunk, decode_shares[i % 3], i % 2 == 0 ? 0.3 : 1.0, i % 4 == 3,
                     i % 5 == 4 || parallel > 7, std::size_t{i % 2 == 0 ? 512u : 20u}, prompts_first});
      ++i;
    }
  return all;
}

void check_model(const std::string& name, std::uint64_t seed, std::size_t first, std::size_t step, Met& met) {
  std::mt19937_64 random(seed);
  const BatchModel model(sluice::testing::kGoldenModels + "/" + name);
  const bool encoder = model.model.config.has_encoder();
  std::vector<Arrival> arrivals = Arrivals(model.model.config, random).draw();
  {
    EngineOptions options = batch_options(1, 64);
    options.positions = kPositions;
    const auto engine = model.engine(options, 1);
    for (Arrival& arrival : arrivals) arrival.alone = answer_alone(*engine, arrival.request);
  }
  const std::vector<BatchSetting> settings = settings_for(encoder);
  for (std::size_t i = encoder ? 0 : first; i < settings.size(); i += encoder ? 1 : step) {
    SCOPED_TRACE(settings[i].name());
    Run(model, settings[i], arrivals, random, met).run();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(BatcherProperty, EveryRequestGetsWhatItGetsAlone) {
  Met met;
  std::size_t at = 0;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    const std::uint64_t seed = batch_seed();
    SCOPED_TRACE(name + ", SLUICE_TEST_SEED=" + std::to_string(seed));
    std::cout << name << ": SLUICE_TEST_SEED=" << seed << '\n';
    check_model(name, seed, at++ % 3, 3, met);
    if (HasFailure()) return;
  }
  for (const std::size_t count :
       {met.shared, met.found, met.cancelled, met.cancelled_late, met.repeated, met.failed, met.stalled,
        met.ends, met.stops, met.contexts, met.prompt_logprobs})
    EXPECT_GT(count, 0u);
  std::cout << "shared " << met.shared << ", found " << met.found << ", cancelled " << met.cancelled << " ("
            << met.cancelled_late << " answering), failed reads " << met.repeated << ", failed requests "
            << met.failed << ", stalled " << met.stalled << ", ended " << met.ends << ", stopped "
            << met.stops << ", full " << met.contexts << ", prompt log-probabilities " << met.prompt_logprobs
            << '\n';
}

}  // namespace
}  // namespace sluice::engine
