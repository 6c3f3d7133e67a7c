// Answers that draft, whatever it costs: each request gets the tokens, logits and log-probabilities that it
// gets alone without drafts, also beside others, bound to a grammar, and after broken reads.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/batch/batch_testing.h"
#include "engine/draft/drafting.h"
#include "engine/grammar/schema_testing.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {
namespace {

using tokenizer::TokenId;

// Pieces that come again and again.
std::vector<TokenId> repeated_prompt(std::mt19937_64& random, std::size_t vocab) {
  std::vector<TokenId> piece(2 + random() % 7), prompt;
  for (TokenId& id : piece) id = static_cast<TokenId>(random() % std::min<std::size_t>(vocab, 60));
  for (std::size_t i = 1 + random() % 40; i > 0; --i) prompt.push_back(piece[prompt.size() % piece.size()]);
  return prompt;
}

BatchRequest repeated_request(std::mt19937_64& random, std::size_t vocab) {
  BatchRequest request = request_of(repeated_prompt(random, vocab), 1 + random() % 40);
  if (random() % 8 == 0) request.max_tokens.reset();
  request.ignore_eos = random() % 2 == 0;
  if (random() % 3 == 0) request.ends = {static_cast<TokenId>(random() % vocab)};
  if (random() % 2 == 0) request.logprobs = random() % 4;
  if (request.logprobs && random() % 3 == 0) request.prompt_logprobs = 1;
  SamplerConfig& sampler = request.sampler;
  sampler.seed = random();
  if (random() % 2 == 0) sampler.temperature = 0.3;
  if (random() % 3 == 0) sampler.frequency_penalty = -1;
  if (random() % 4 == 0) sampler.top_p = 0.6;
  return request;
}

struct BatchDraftsMet {
  DraftCounts drafts;
  std::size_t together = 0, failed_reads = 0, stopped = 0;
};

void expect_as_alone(const KeepingClient& client, const BatchRequest& request, const AloneAnswer& alone,
                     std::size_t stop_after) {
  ASSERT_TRUE(client.end);
  ASSERT_FALSE(client.end->error) << client.end->error->what();
  const std::size_t count = std::min(alone.tokens.size(), stop_after);
  ASSERT_EQ(client.tokens.size(), count);
  EXPECT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(), alone.tokens.begin()));
  // What the client heard behind the end of its answer was drawn in vain.
  ASSERT_GE(client.logits.size(), count);
  EXPECT_TRUE(std::equal(client.logits.begin(), client.logits.begin() + static_cast<std::ptrdiff_t>(count),
                         alone.logits.begin()));
  if (!request.logprobs) return;
  const std::size_t first = alone.rows.size() - alone.tokens.size();
  std::vector<TokenLogprob> best;
  for (std::size_t i = 0; i < count; ++i) {
    const double logprob = token_logprob(alone.rows[first + i], alone.tokens[i], *request.logprobs, best);
    std::vector<TokenLogprob> all = {{alone.tokens[i], logprob}};
    all.insert(all.end(), best.begin(), best.end());
    EXPECT_EQ(client.best[i], all) << "token " << i;
  }
}

void run_with_drafts(const BatchModel& model, std::mt19937_64& random, BatchDraftsMet& met) {
  EngineOptions options = batch_options(1 + random() % 4, 24 + random() % 40);
  options.cache_bytes = model.cache_bytes(random() % 2 == 0 ? 0 : 0.4);
  options.less_cache_will_do = true;
  if (random() % 2 == 0) options.prefetch = "stream";
  Faults faults;
  faults.put_into(options);
  options.draft = DraftKind::kNgram;
  const auto engine = model.engine(options, 1 + random() % 6);
  const auto plain = model.engine(batch_options(1, 64));
  engine->drafting().guard().set_when(DraftWhen::kAlways);
  TurnedClock clock;
  Batcher batcher(*engine, {.parallel = options.sequences, .stretch = 24, .now = clock.function()});
  std::deque<KeepingClient> clients;
  std::vector<BatchRequest> requests;
  for (std::size_t i = 1 + random() % 6; i > 0; --i) {
    requests.push_back(repeated_request(random, model.model.config.vocab));
    clients.emplace_back();
    if (random() % 4 == 0) clients.back().stop_after = 1 + random() % 20;
    batcher.submit(requests.back(), clients.back());
  }
  std::size_t failing = random() % 2 == 0 ? 40 : 0;  // single reads, after which a pass goes well
  faults.set([&](const DiskRead&) { return failing != 0 && faults.reads % 61 == 0 && failing-- != 0; });
  while (batcher.advance()) met.together += batcher.load().decoding > 1;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    if (clients[i].end && clients[i].end->error) continue;  // two reads in a row failed
    const AloneAnswer alone = answer_alone(*plain, requests[i]);
    expect_as_alone(clients[i], requests[i], alone, clients[i].stop_after);
    met.drafts += clients[i].end->statistics.drafts;
    met.stopped += clients[i].tokens.size() < alone.tokens.size();
  }
  met.failed_reads += faults.failed;
  EXPECT_EQ(engine->prefixes().use().used, 0u);
}

TEST(BatcherDrafts, ChangeNoAnswer) {
  const std::uint64_t seed = batch_seed();
  std::cout << "SLUICE_TEST_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  BatchDraftsMet met;
  for (const std::string name : {"qwen2_moe_a", "deepseek_v2_a", "gpt_oss_a", "mixtral_a"}) {
    const std::string path = sluice::testing::kGoldenModels + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(name);
    const BatchModel model(path);
    for (int round = 0; round < 4; ++round) run_with_drafts(model, random, met);
  }
  std::cout << met.drafts.drafted << " tokens drafted, " << met.drafts.accepted << " accepted, "
            << met.together << " turns of several answers, " << met.failed_reads << " reads failed, "
            << met.stopped << " answers stopped\n";
  EXPECT_GT(met.drafts.accepted, 20u);
  EXPECT_GT(met.drafts.drafted, met.drafts.accepted);
  EXPECT_GT(met.together, 0u);
}

// A grammar leaves few tokens, so that what repeats in its texts is foreseen well, and its end ends a draft.
TEST(BatcherDrafts, KeepToAGrammar) {
  const BatchModel model(SLUICE_SOURCE_DIR "/models/fable-moe-18m");
  const auto tokenizer = tokenizer::load_tokenizer(model.checkpoint->path());
  const Json schema =
      Json::parse(R"({"type":"array","minItems":6,"maxItems":6,"items":{"type":"object","properties":{)"
                  R"("fox":{"type":"boolean"},"den":{"type":"integer","minimum":1,"maximum":3}},)"
                  R"("required":["fox","den"],"additionalProperties":false}})");
  const auto grammar = testing::grammar_of(schema, true);
  DraftCounts drafts;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto answer = [&](bool drafted, KeepingClient& client) {
      GrammarMasks masks(*tokenizer, std::size_t{4} << 20);
      EngineOptions options = batch_options(1, 64);
      options.positions = 400;
      if (drafted) options.draft = DraftKind::kNgram;
      const auto engine = model.engine(options, 5);
      engine->drafting().guard().set_when(DraftWhen::kAlways);
      BatchRequest request = request_of(prompt_of(9), 300);
      request.ignore_eos = false;
      request.sampler.temperature = 1;
      request.sampler.seed = seed;
      request.logprobs = 2;
      request.guide = std::make_shared<AnswerGuide>(grammar, masks);
      Batcher batcher(*engine, {});
      batcher.submit(std::move(request), client);
      while (batcher.advance()) {
      }
    };
    KeepingClient plain, drafting;
    answer(false, plain);
    answer(true, drafting);
    ASSERT_TRUE(plain.end && drafting.end && !drafting.end->error);
    EXPECT_EQ(plain.end->statistics.drafts, DraftCounts{});
    EXPECT_EQ(drafting.tokens, plain.tokens) << seed;
    EXPECT_EQ(drafting.best, plain.best) << seed;
    EXPECT_EQ(drafting.end->reason, StopReason::kEos);
    EXPECT_TRUE(testing::accepts(*grammar, tokenizer->decode(drafting.tokens, tokenizer::ShowSpecial::kNo)));
    drafts += drafting.end->statistics.drafts;
  }
  EXPECT_GT(drafts.accepted, 40u);
}

}  // namespace
}  // namespace sluice::engine
