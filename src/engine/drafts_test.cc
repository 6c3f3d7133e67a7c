// Drafts change no token and no bit: answers are those without, whatever is drafted, and rows of drafts that
// do not come true leave the sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "engine/draft/drafting.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/session/prefix_cache.h"
#include "engine/watch/statistics.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {
namespace {

using Tokens = std::vector<tokenizer::TokenId>;

std::uint64_t drafts_seed() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "SLUICE_TEST_SEED=" << seed << '\n';
  return seed;
}

struct DraftedModel {
  explicit DraftedModel(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}

  std::unique_ptr<Engine> engine(const EngineOptions& options, std::size_t logit_rows = 1) const {
    return std::make_unique<Engine>(*checkpoint, model, resolve(options, *checkpoint, model), logit_rows);
  }
  // … that drafts whatever it costs.
  std::unique_ptr<Engine> drafting_engine(const EngineOptions& options, std::size_t logit_rows) const {
    EngineOptions drafting = options;
    drafting.draft = DraftKind::kNgram;
    std::unique_ptr<Engine> made = engine(drafting, logit_rows);
    made->drafting().guard().set_when(DraftWhen::kAlways);
    return made;
  }

  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

EngineOptions drafts_options(std::size_t sequences) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.positions = 96;
  options.encoder_positions = 64;  // ignored by a decoder alone
  options.sequences = sequences;
  options.chunk = 32;
  options.draws = true;
  options.cache = "lru";
  options.scheduler = "fifo";
  options.prefetch = "none";
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

// Pieces that come again and again.
Tokens ngram_text(std::mt19937_64& random, std::size_t vocab, std::size_t tokens) {
  std::vector<Tokens> pieces(1 + random() % 4);
  for (Tokens& piece : pieces)
    for (std::size_t i = 0; i < 2 + random() % 6; ++i)
      piece.push_back(static_cast<tokenizer::TokenId>(random() % vocab));
  Tokens text;
  while (text.size() < tokens)
    for (const tokenizer::TokenId id : pieces[random() % pieces.size()]) text.push_back(id);
  text.resize(tokens);
  return text;
}

SamplerConfig any_sampler(std::mt19937_64& random) {
  SamplerConfig sampler;
  sampler.seed = random();
  switch (random() % 4) {
    case 0:
      break;  // the likeliest
    case 1:
      sampler.temperature = 0.2;
      sampler.top_k = 3;
      break;
    case 2:
      sampler.temperature = 0.7;
      sampler.top_p = 0.5;
      sampler.repetition_penalty = 0.8;  // likes what was there
      break;
    default:
      sampler.temperature = 0.5;
      sampler.frequency_penalty = -2;
      sampler.min_p = 0.05;
  }
  return sampler;
}

// What all runs together have met.
struct DraftsMet {
  std::size_t models = 0, refused = 0, batches = 0;
  DraftCounts drafts;
};

std::vector<GenerateRequest> any_requests(std::mt19937_64& random, std::size_t vocab) {
  std::vector<GenerateRequest> requests(1 + random() % 3);
  for (GenerateRequest& request : requests) {
    request.prompt = ngram_text(random, std::min<std::size_t>(vocab, 60), 1 + random() % 40);
    request.max_tokens = random() % 8 == 0 ? 1000 : 1 + random() % 50;  // some fill the context
    request.sampler = any_sampler(random);
    request.ignore_eos = random() % 2 == 0;
    if (random() % 3 == 0) request.ends = {static_cast<tokenizer::TokenId>(random() % vocab)};
  }
  return requests;
}

void check_model(const std::string& name, std::mt19937_64& random, DraftsMet& met) {
  SCOPED_TRACE(name);
  const DraftedModel model(sluice::testing::kGoldenModels + "/" + name);
  const bool limited = model.model.config.moe.capacity != 0 || model.model.config.has_encoder();
  met.models += 1;
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const std::vector<GenerateRequest> requests = any_requests(random, model.model.config.vocab);
    const auto plain = model.engine(drafts_options(requests.size()));
    std::vector<GenerateResult> expected;
    for (const GenerateRequest& request : requests) expected.push_back(generate(*plain, nullptr, request));
    EXPECT_EQ(plain->drafting().counts(), DraftCounts{});

    EngineOptions options = drafts_options(requests.size());
    options.cache_bytes = random() % 3 * 40 * kKiB;
    options.less_cache_will_do = true;
    if (random() % 2 == 0) options.prefetch = "stream";
    options.chunk = requests.size() + random() % 32;
    options.threads = 1 + static_cast<unsigned>(random() % 2);
    const auto engine = model.drafting_engine(options, 1 + random() % 6);
    if (limited) {
      EXPECT_NE(engine->drafting().why_off(), "");
      met.refused += 1;
    }
    const std::vector<GenerateResult> results = generate(*engine, nullptr, requests);
    DraftCounts counts;
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].tokens, expected[i].tokens) << "request " << i;
      EXPECT_EQ(results[i].reason, expected[i].reason) << "request " << i;
      counts += results[i].statistics.drafts;
      tokens += results[i].tokens.size() - 1;
    }
    EXPECT_EQ(engine->drafting().counts(), counts);
    EXPECT_LE(counts.accepted, counts.drafted);
    // Each token behind the first was drawn once, from the logits of one token that stayed.
    EXPECT_EQ(engine->statistics().decode.tokens, tokens);
    EXPECT_EQ(engine->prefixes().use().used, 0u);
    met.drafts += counts;
    met.batches += requests.size() > 1;
  }
}

TEST(Drafts, ChangeNoTokenOfAnyModel) {
  std::mt19937_64 random(drafts_seed());
  DraftsMet met;
  for (const std::string& name : sluice::testing::golden_model_names()) check_model(name, random, met);
  std::cout << met.models << " models, of " << met.refused / 3 << " of which nothing can be drafted; "
            << met.drafts.drafted << " tokens drafted in " << met.drafts.passes << " steps, "
            << met.drafts.accepted << " accepted\n";
  EXPECT_GT(met.models, met.refused / 3);
  EXPECT_GT(met.refused, 0u);
  EXPECT_GT(met.batches, 0u);
  EXPECT_GT(met.drafts.accepted, 50u);
  EXPECT_GT(met.drafts.drafted - met.drafts.accepted, 50u);
}

// Tokens that were fed one by one, and again with drafts of which some are wrong.
void check_rows(const std::string& name, const EngineOptions& options, std::mt19937_64& random) {
  SCOPED_TRACE(name);
  const DraftedModel model(sluice::testing::kGoldenModels + "/" + name);
  if (model.model.config.has_encoder()) return;
  const auto engine = model.engine(options, 1 + random() % 6);
  const std::size_t vocab = model.model.config.vocab;
  const Tokens text = ngram_text(random, vocab, 80);
  std::vector<std::uint64_t> alone;
  const auto plain = engine->new_sequence();
  engine->prefill(*plain, std::span(text).first(5), {[](std::size_t) { return false; }, {}});
  for (std::size_t t = 5; t < text.size(); ++t)
    alone.push_back(xxh3(std::as_bytes(engine->decode(*plain, text[t]))));
  plain->clear();
  const std::size_t free = engine->prefixes().use().free;
  const auto drafted = engine->new_sequence();
  engine->prefill(*drafted, std::span(text).first(5), {[](std::size_t) { return false; }, {}});
  std::uint64_t fed = 0;
  for (std::size_t t = 5; t < text.size();) {
    const std::size_t drafts = std::min(random() % (kMostDrafts + 1), text.size() - 1 - t);
    const std::size_t good = drafts == 0 ? 0 : random() % (drafts + 1);
    Tokens tokens(text.begin() + static_cast<std::ptrdiff_t>(t),
                  text.begin() + static_cast<std::ptrdiff_t>(t + good + 1));
    for (std::size_t i = good; i < drafts; ++i)
      tokens.push_back(static_cast<tokenizer::TokenId>(random() % vocab));
    const SequenceSpan span{drafted.get(), 0, tokens.size(), StepKind::kDecode};
    engine->step({tokens, {&span, 1}}, {[](std::size_t) { return true; },
                                        [&](std::size_t i, std::span<const float> row) {
                                          if (i > good) return;
                                          EXPECT_EQ(xxh3(std::as_bytes(row)), alone[t - 5 + i])
                                              << "token " << t + i;
                                        }});
    fed += tokens.size();
    if (drafts != 0) engine->drafting().settle(*drafted, drafts, good);
    t += good + 1;
    EXPECT_EQ(drafted->length(), t);
  }
  EXPECT_GT(fed, text.size());
  EXPECT_EQ(engine->statistics().decode.tokens, 2 * (text.size() - 5));
  EXPECT_LT(engine->prefixes().use().free, free);
}

TEST(Drafts, LeaveNoRowAndNoBitBehind) {
  std::mt19937_64 random(drafts_seed());
  std::size_t models = 0;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    EngineOptions options = drafts_options(2);
    options.kv = std::array{DType::kBF16, DType::kF32, DType::kI8}[random() % 3];
    if (random() % 2 == 0) options.cache_bytes = 0;
    check_rows(name, options, random);
    ++models;
  }
  EXPECT_GT(models, 8u);
  EngineOptions there = drafts_options(2);
  there.device = "emulated:link=inf,compute=inf,latency=0us";
  there.dense_on = DenseOn::kDevice;
  check_rows("qwen2_moe_a", there, random);
}

class DraftedTexts : public ::testing::Test {
 protected:
  const DraftedModel model_{SLUICE_SOURCE_DIR "/models/fable-moe-18m"};
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer_ =
      tokenizer::load_tokenizer(model_.checkpoint->path());

  GenerateRequest request(const std::string& prompt, std::size_t tokens) const {
    GenerateRequest request;
    request.prompt = tokenizer_->encode(prompt, tokenizer::AddSpecial::kNo);
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.sampler.temperature = 0.4;
    request.sampler.seed = 7;
    return request;
  }
  static std::vector<std::string> told(Engine& engine, const tokenizer::Tokenizer& tokenizer,
                                       GenerateRequest request, GenerateResult& result) {
    std::vector<std::string> pieces;
    request.on_text = [&](const std::string& text, std::size_t tokens) {
      pieces.push_back(std::to_string(tokens) + ":" + text);
    };
    result = generate(engine, &tokenizer, request);
    return pieces;
  }
};

TEST_F(DraftedTexts, AreToldTokenByTokenAndStopAsWithout) {
  EngineOptions options = drafts_options(1);
  options.positions = 256;
  const auto plain = model_.engine(options), drafting = model_.drafting_engine(options, 5);
  const std::string lines = "the cat sat. the dog sat. the cat sat. the dog sat. the cat";
  GenerateRequest asked = request(lines, 120);
  GenerateResult expected, result;
  EXPECT_EQ(told(*drafting, *tokenizer_, asked, result), told(*plain, *tokenizer_, asked, expected));
  EXPECT_EQ(result.text, expected.text);
  ASSERT_GT(result.statistics.drafts.accepted, 0u);
  // Stop strings from all places of the text, so that some end within a draft.
  for (std::size_t at = 0; at + 5 < expected.text->size(); at += 9) {
    asked.stop = {expected.text->substr(at, 5)};
    GenerateResult stopped, drafted;
    EXPECT_EQ(told(*drafting, *tokenizer_, asked, drafted), told(*plain, *tokenizer_, asked, stopped)) << at;
    EXPECT_EQ(drafted.tokens, stopped.tokens);
    EXPECT_EQ(drafted.reason, StopReason::kStopString);
  }
}

TEST_F(DraftedTexts, GoOnInAConversation) {
  EngineOptions options = drafts_options(1);
  options.positions = 256;
  const auto plain = model_.engine(options), drafting = model_.drafting_engine(options, 5);
  Tokens prompt = tokenizer_->encode("a b c a b c a b c a b", tokenizer::AddSpecial::kNo);
  DraftCounts counts;
  for (int turn = 0; turn < 4; ++turn) {
    GenerateRequest asked = request("", static_cast<std::size_t>(20 + turn));
    asked.prompt = prompt;
    asked.keep = true;
    const GenerateResult without = generate(*plain, tokenizer_.get(), asked),
                         with = generate(*drafting, tokenizer_.get(), asked);
    EXPECT_EQ(with.tokens, without.tokens) << turn;
    EXPECT_EQ(with.statistics.cached, without.statistics.cached) << turn;
    counts += with.statistics.drafts;
    prompt.insert(prompt.end(), with.tokens.begin(), with.tokens.end() - turn % 2);
    prompt.push_back(5);
  }
  EXPECT_GT(counts.drafted, counts.accepted);
}

struct DraftReaderGone {};

TEST_F(DraftedTexts, EndWhereTheirReaderGoes) {
  EngineOptions options = drafts_options(1);
  const auto drafting = model_.drafting_engine(options, 5);
  const GenerateRequest whole = request("a b a b a b a b a b", 40);
  const Tokens expected = generate(*drafting, tokenizer_.get(), whole).tokens;
  for (const std::size_t last : {1u, 2u, 3u, 9u, 20u}) {
    GenerateRequest broken = whole;
    std::size_t given = 0;
    broken.on_text = [&](const std::string&, std::size_t tokens) {
      given = tokens;
      if (tokens == last) throw DraftReaderGone();
    };
    EXPECT_THROW(generate(*drafting, tokenizer_.get(), broken), DraftReaderGone);
    EXPECT_EQ(given, last);
    EXPECT_EQ(drafting->prefixes().use().used, 0u);
    EXPECT_EQ(generate(*drafting, tokenizer_.get(), whole).tokens, expected);
  }
}

}  // namespace
}  // namespace sluice::engine
