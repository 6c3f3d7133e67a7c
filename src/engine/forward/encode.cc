#include "engine/forward/encode.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"
#include "base/stopwatch.h"
#include "engine/session/chunks.h"
#include "tokenizer/text/text_check.h"

namespace sluice::engine {
namespace {

// The input of one sequence, in chunks.
class Input {
 public:
  Input(const ForwardParts& parts, Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
        const std::function<bool()>& go_on)
      : parts_(parts), sequence_(sequence), tokens_(tokens), go_on_(go_on) {}

  // Calls `work` for every chunk; false if it is to stop.
  bool run_chunks(const std::function<void(LayerRun&)>& work) const {
    const auto feed = [&](std::size_t begin, std::span<const tokenizer::TokenId> chunk) {
      if (go_on_ && !go_on_()) return false;
      const SequenceSpan span{&sequence_, 0, chunk.size(), StepKind::kPrompt, begin == 0};
      const Step step{chunk, {&span, 1}, begin};
      LayerRun run = parts_.run(step);
      try {
        work(run);
        parts_.ops.settle();  // the next chunk uses what this one used
      } catch (const Error& error) {
        parts_.on_error(error);
        throw;
      }
      return true;
    };
    return each_chunk(tokens_, parts_.chunk, feed) == tokens_.size();
  }

  bool layer(const models::EncoderForward& encoder, std::size_t layer) const {
    return run_chunks([&](LayerRun& run) {
             run.begin_layer(layer);
             run.load_encoder_hidden();
             encoder.keys(run);
           }) &&
           run_chunks([&](LayerRun& run) {
             run.begin_layer(layer);
             run.load_encoder_hidden();
             encoder.layer.attention(run);
             encoder.layer.feed_forward(run);
             run.save_encoder_hidden();
           });
  }

 private:
  const ForwardParts& parts_;
  Sequence& sequence_;
  const std::span<const tokenizer::TokenId> tokens_;
  const std::function<bool()>& go_on_;
};

}  // namespace

bool encode_input(const ForwardParts& parts, const models::EncoderForward& encoder, Sequence& sequence,
                  std::span<const tokenizer::TokenId> tokens, const std::function<bool()>& go_on) {
  SLUICE_CHECK(!tokens.empty() && sequence.length() == 0);
  tokenizer::check_ids(tokens, parts.config.vocab, "tokens");
  if (tokens.size() > sequence.encoder_positions())
    throw Error(ErrorKind::kInvalid, "the encoder's input is longer than the context that was reserved")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", sequence.encoder_positions()))
        .found(std::to_string(tokens.size()));

  Stopwatch watch;
  const SequenceSpan whole{&sequence, 0, tokens.size()};
  const Step step{tokens, {&whole, 1}, 0};
  parts.moe.begin_step(step);
  sequence.set_encoder_length(tokens.size());
  // A sequence whose input was not encoded to the end, for any reason, has no input, and the step never was.
  struct Forget {
    const ForwardParts& parts;
    const Step& step;
    Sequence* sequence;
    ~Forget() {
      if (sequence == nullptr) return;
      parts.ops.abandon();
      sequence->set_encoder_length(0);
      parts.moe.cancel_step(step);
    }
  } forget{parts, step, &sequence};
  const Input input(parts, sequence, tokens, go_on);
  bool done = input.run_chunks([&](LayerRun& run) {
    run.embed(parts.embedding);
    run.save_encoder_hidden();
  });
  for (std::size_t layer = 0; done && layer < parts.config.encoder_layers; ++layer)
    done = input.layer(encoder, layer);
  done = done && input.run_chunks([](LayerRun& run) {
    run.load_encoder_hidden();
    run.keep_encoder_output();
  });
  if (done) {
    forget.sequence = nullptr;
    parts.moe.end_step();
  }
  ExpertStatistics& count = parts.statistics.of(StepKind::kPrompt);
  count.steps += (tokens.size() + parts.chunk - 1) / parts.chunk;
  count.tokens += tokens.size();
  count.seconds += watch.seconds();
  return done;
}

}  // namespace sluice::engine
