// Which spans begin a forward: the same whoever cuts a prompt, a batcher, Engine::prefill or its callers.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "engine/batch/batch_testing.h"
#include "engine/watch/routing_observer.h"
#include "model/golden_models.h"

namespace sluice::engine {
namespace {

struct SeenSpan {
  StepKind kind;
  bool first;
  std::size_t position;
};

class SpansOfSequences final : public RoutingObserver {
 public:
  std::map<experts::SequenceId, std::vector<SeenSpan>> spans;
  void on_step(const Step& step) override {
    for (const SequenceSpan& span : step.spans)
      spans[span.sequence->id()].push_back({span.kind, span.first_of_forward, step.position(span)});
  }
};

class BatcherForwards : public BatcherFixture {};

TEST_F(BatcherForwards, APromptIsOneHoweverItIsCut) {
  make(2, 16);
  SpansOfSequences seen;
  engine_->observe(&seen);
  submit(request_of(prompt_of(50), 3));
  run();
  submit(request_of(prompt_of(90), 3));  // continues the first, whose rows it finds
  submit(request_of(prompt_of(70, 1), 3));
  run();
  engine_->observe(nullptr);
  std::size_t later_chunks = 0, adopted = 0;
  for (const auto& [id, spans] : seen.spans)
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const bool prompt = spans[i].kind == StepKind::kPrompt;
      EXPECT_EQ(spans[i].first, !prompt || i == 0) << "sequence " << id << ", span " << i;
      later_chunks += prompt && i > 0;
      adopted += i == 0 && spans[i].position > 0;
    }
  EXPECT_EQ(seen.spans.size(), 3u);
  EXPECT_GE(later_chunks, 6u);
  EXPECT_EQ(adopted, 1u);
}

// Switch limits how many tokens of a prompt an expert takes, so that it counts over all of its chunks.
TEST(Forwards, APromptThatIsFedInPiecesIsOne) {
  const BatchModel model(sluice::testing::kGoldenModels + "/switch_transformers_b");
  ASSERT_GT(model.model.config.moe.capacity, 0u);
  const auto engine = model.engine(batch_options(1, 64));
  const std::vector<tokenizer::TokenId> prompt = prompt_of(40);
  enum class Fed { kWhole, kInPieces, kAsForwards };
  const auto hashes = [&](Fed fed) {
    std::vector<std::uint64_t> all;
    const LogitSink sink{[](std::size_t) { return true; },
                         [&](std::size_t, std::span<const float> row) { all.push_back(hash_of(row)); }};
    const auto sequence = engine->new_sequence();
    engine->encode(*sequence, prompt_of(9));
    std::size_t at = 0;
    for (const std::size_t tokens : {13u, 9u, 18u}) {
      const auto part = std::span(prompt).subspan(at, fed == Fed::kWhole ? prompt.size() : tokens);
      const SequenceSpan span{sequence.get(), 0, part.size(), StepKind::kPrompt, true};
      if (fed == Fed::kAsForwards)
        engine->step({part, {&span, 1}}, sink);
      else
        engine->prefill(*sequence, part, sink);
      at += part.size();
      if (at == prompt.size()) break;
    }
    // A prompt behind decoded tokens is another one: it counts for itself.
    engine->decode(*sequence, 1, sink);
    EXPECT_FALSE(sequence->in_prompt());
    return all;
  };
  const std::vector<std::uint64_t> whole = hashes(Fed::kWhole);
  EXPECT_EQ(whole.size(), prompt.size() + 1);
  EXPECT_EQ(hashes(Fed::kInPieces), whole);
  EXPECT_NE(hashes(Fed::kAsForwards), whole);
}

}  // namespace
}  // namespace sluice::engine
