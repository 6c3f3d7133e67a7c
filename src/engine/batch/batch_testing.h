// What the tests of a Batcher share: a client that keeps what it is told, a clock that they turn, a reader
// that fails when told to, and what a request gets when it is alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/files/disk.h"
#include "base/hash.h"
#include "engine/batch/batcher.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/session/prefix_cache.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {

inline std::uint64_t batch_seed() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

inline std::uint64_t hash_of(std::span<const float> logits) { return xxh3(std::as_bytes(logits)); }

// Keeps all that it is told.
class KeepingClient final : public BatchClient {
 public:
  std::size_t stop_after = SIZE_MAX;                               // tokens
  std::function<void()> at_admission = nullptr, at_end = nullptr;  // called then

  std::vector<tokenizer::TokenId> tokens;
  std::vector<std::uint64_t> logits;                   // hashes
  std::vector<std::vector<TokenLogprob>> best;         // for each token, itself first
  std::vector<std::vector<TokenLogprob>> prompt_best;  // likewise, from the prompt's second token on
  std::vector<std::size_t> prefilled;
  std::optional<std::size_t> cached;
  int ends = 0;
  std::optional<BatchEnd> end;

  void on_admitted(std::size_t found) override {
    EXPECT_FALSE(cached || end);
    cached = found;
    if (at_admission) at_admission();
  }
  void on_prefill(std::size_t done, std::size_t total) override {
    EXPECT_TRUE(cached && !end && done > (prefilled.empty() ? 0 : prefilled.back()) && done <= total);
    prefilled.push_back(done);
  }
  void on_prompt_token(const BatchToken& token) override {
    EXPECT_TRUE(cached && !end);
    prompt_best.push_back(listed(token));
  }
  void on_logits(std::span<const float> row) override {
    EXPECT_GE(logits.size(), tokens.size());
    EXPECT_LE(logits.size(), tokens.size() + kMostDrafts);
    logits.push_back(hash_of(row));
  }
  bool on_token(const BatchToken& token) override {
    EXPECT_TRUE(cached && !end);
    tokens.push_back(token.id);
    best.push_back(listed(token));
    return tokens.size() < stop_after;
  }
  void on_end(const BatchEnd& told) override {
    ends += 1;
    end = told;
    if (at_end) at_end();
  }

 private:
  static std::vector<TokenLogprob> listed(const BatchToken& token) {
    std::vector<TokenLogprob> all = {{token.id, token.logprob}};
    all.insert(all.end(), token.top.begin(), token.top.end());
    return all;
  }
};

// Moves on by `tick` whenever it is read.
struct TurnedClock {
  std::chrono::nanoseconds tick{1000};
  std::chrono::steady_clock::time_point time{};
  std::function<std::chrono::steady_clock::time_point()> function() {
    return [this] { return time += tick; };
  }
};

// Reads that fail. Thread-safe: dense weights are read on other threads than experts.
struct Faults {
  std::uint64_t reads = 0, failed = 0;

  // Asked for each read, one at a time; null: none fails.
  void set(std::function<bool(const DiskRead&)> fails) {
    const std::lock_guard lock(mutex_);
    fails_ = std::move(fails);
  }
  void put_into(EngineOptions& options) {
    options.fetch.wrap_reader = [this](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner), [this](const DiskRead& read) {
        const std::lock_guard lock(mutex_);
        ++reads;
        if (!fails_ || !fails_(read)) return 0;
        ++failed;
        return EIO;
      });
    };
  }

 private:
  std::mutex mutex_;
  std::function<bool(const DiskRead&)> fails_;
};

inline EngineOptions batch_options(std::size_t parallel, std::size_t chunk) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.positions = 160;
  options.encoder_positions = 64;  // ignored by a decoder alone
  options.sequences = parallel;
  options.suspended_passes = 1;
  options.draws = true;
  options.chunk = chunk;
  options.cache = "lru";
  options.prefetch = "none";
  options.scheduler = "fifo";
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

// A model, and an engine for it.
struct BatchModel {
  explicit BatchModel(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}

  std::unique_ptr<Engine> engine(const EngineOptions& options, std::size_t logit_rows = 3) const {
    return std::make_unique<Engine>(*checkpoint, model, resolve(options, *checkpoint, model), logit_rows);
  }
  // Bytes of a cache that holds so large a share of the experts.
  Bytes cache_bytes(double share) const {
    const auto any = engine(batch_options(1, 16));
    const auto all = static_cast<double>(model.experts.size() * any->report().expert_memory_bytes());
    return static_cast<Bytes>(all * share);
  }

  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

// What a request gets alone, token by token, without a batcher.
struct AloneAnswer {
  std::vector<tokenizer::TokenId> tokens;
  std::vector<std::uint64_t> logits = {};
  std::vector<std::vector<float>> rows =
      {};  // all logits: behind each token of the prompt, then of the answer
  StopReason reason = StopReason::kLength;
};

inline AloneAnswer answer_alone(Engine& engine, const BatchRequest& request) {
  const model::ModelConfig& config = engine.model().config;
  const auto has = [](const std::vector<tokenizer::TokenId>& ends, tokenizer::TokenId token) {
    return std::ranges::find(ends, token) != ends.end();
  };
  AloneAnswer answer;
  std::vector<tokenizer::TokenId> tokens =
      config.has_encoder() ? std::vector{config.decoder_start} : request.prompt;
  const std::size_t begins = tokens.size(), most = request.max_tokens.value_or(SIZE_MAX);
  const auto sequence = engine.new_sequence();
  if (config.has_encoder()) engine.encode(*sequence, request.prompt);
  const LogitSink sink{
      [](std::size_t) { return true; },
      [&](std::size_t, std::span<const float> row) { answer.rows.emplace_back(row.begin(), row.end()); }};
  engine.prefill(*sequence, tokens, sink);
  Sampler sampler(request.sampler);
  while (answer.tokens.size() < most) {
    const std::vector<float>& row = answer.rows.back();
    const tokenizer::TokenId token = sampler.next(row, tokens, begins, engine.candidates());
    tokens.push_back(token);
    answer.tokens.push_back(token);
    answer.logits.push_back(hash_of(row));
    if (!request.ignore_eos && (has(config.eos, token) || has(request.ends, token))) {
      answer.reason = StopReason::kEos;
      break;
    }
    if (answer.tokens.size() == most) break;
    if (tokens.size() - 1 == sequence->positions()) {
      answer.reason = StopReason::kContext;
      break;
    }
    engine.decode(*sequence, token, sink);
  }
  return answer;
}

inline std::vector<tokenizer::TokenId> prompt_of(std::size_t tokens, std::size_t salt = 0) {
  std::vector<tokenizer::TokenId> prompt;
  for (std::size_t i = 0; i < tokens; ++i)
    prompt.push_back(static_cast<tokenizer::TokenId>((7 * i + 5 * salt + 3) % 64));
  return prompt;
}

inline BatchRequest request_of(std::vector<tokenizer::TokenId> prompt, std::optional<std::size_t> tokens) {
  BatchRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.ignore_eos = true;
  return request;
}

// A batcher for one model, and its clients.
class BatcherFixture : public ::testing::Test {
 protected:
  void make(EngineOptions options) {
    options.positions = positions_;
    batcher_.reset();
    engine_ = model_.engine(options);
    rules_.parallel = options.sequences;
    rules_.now = clock_.function();
    batcher_ = std::make_unique<Batcher>(*engine_, rules_);
  }
  void make(std::size_t parallel, std::size_t chunk, std::optional<std::size_t> kv_tokens = {}) {
    EngineOptions options = batch_options(parallel, chunk);
    options.kv_tokens = kv_tokens;
    make(options);
  }
  KeepingClient& submit(BatchRequest request) {
    KeepingClient& client = clients_.emplace_back();
    ids_.push_back(batcher_->submit(std::move(request), client));
    return client;
  }
  void run() {
    while (batcher_->advance()) {
    }
    expect_nothing_left();
  }
  void expect_nothing_left() const {
    const BatchLoad load = batcher_->load();
    EXPECT_EQ(load.waiting + load.prefilling + load.decoding + load.stalled, 0u);
    EXPECT_EQ(engine_->prefixes().use().used, 0u);
    for (const KeepingClient& client : clients_) EXPECT_EQ(client.ends, 1);
  }
  AloneAnswer alone(const BatchRequest& request) const {
    EngineOptions options = batch_options(1, 64);
    options.positions = positions_;
    const auto engine = model_.engine(options);
    return answer_alone(*engine, request);
  }

  const BatchModel model_{sluice::testing::kGoldenModels + "/qwen2_moe_a"};
  std::size_t positions_ = 160;
  TurnedClock clock_;
  BatchRules rules_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Batcher> batcher_;
  std::deque<KeepingClient> clients_;
  std::vector<RequestId> ids_;
};

}  // namespace sluice::engine
