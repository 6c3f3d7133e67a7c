#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "engine/session/stop_strings.h"
#include "model/architecture.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

void check(const Engine& engine, const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request) {
  if (request.prompt.empty())
    throw Error(ErrorKind::kInvalid, "the prompt has no tokens")
        .in("the prompt")
        .expected("1 or more tokens")
        .found("none")
        .fix("give some text, or " + Setting::kTokens);
  const bool encoder = engine.model().config.has_encoder();
  const std::size_t positions = encoder ? engine.plan().encoder_positions : engine.plan().positions;
  if (request.prompt.size() > positions)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", positions))
        .found(fmt::format("{} tokens", request.prompt.size()))
        .fix("shorten the prompt or raise " + Setting::kContext);
  for (const std::string& stop : request.stop)
    if (stop.empty())
      throw Error(ErrorKind::kUsage, "a stop string is empty")
          .in(Setting::kStop)
          .expected("text that ends the answer")
          .found("\"\"")
          .fix("give " + Setting::kStop + " some text, or leave it out");
  if (tokenizer == nullptr && !request.stop.empty())
    throw Error(ErrorKind::kUsage, "stop strings need a tokenizer, and this model has none")
        .in(Setting::kStop)
        .expected("a model with a tokenizer")
        .found("none beside the model")
        .fix("leave " + Setting::kStop + " out");
}

// One sequence of a batch in progress.
class Stream {
 public:
  Stream(Engine& engine, const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request)
      : request_(request),
        eos_(engine.model().config.eos),
        sequence_(engine.new_sequence()),
        sampler_(request.sampler),
        candidates_(engine.candidates()),
        encoded_(!engine.model().config.has_encoder()),
        begins_(encoded_ ? request.prompt : std::vector{engine.model().config.decoder_start}),
        context_(begins_),
        stops_(request.stop) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, tokenizer::ShowSpecial::kNo);
    open_ = request.max_tokens > 0;
  }

  // Prefills the prompt, of an encoder or of the decoder alone. An interrupt stops it in front of any layer.
  void prefill(Engine& engine, Clock::time_point start) {
    if (!encoded_ && open_)
      encoded_ = engine.encode(*sequence_, request_.prompt, [&] { return !stop_if_asked(); });
    if (open_)
      engine.prefill(*sequence_, begins_,
                     {[&](std::size_t t) { return t + 1 == begins_.size(); },
                      [&](std::size_t, std::span<const float> logits) {
                        first_token_ = sampler_.next(logits, context_, candidates_);
                      }},
                     [&] { return !stop_if_asked(); });
    result_.prefill_s = seconds(Clock::now() - start);
  }

  bool open() const { return open_; }
  Sequence* sequence() { return sequence_.get(); }
  tokenizer::TokenId last_token() const { return context_.back(); }

  bool stop_if_asked() {
    if (!open_ || !request_.should_stop || !request_.should_stop()) return false;
    close(StopReason::kInterrupted);
    return true;
  }

  void take_first() {
    decode_start_ = Clock::now();
    if (open_) accept(first_token_);
  }

  // Takes the logits of the next token.
  void take(std::span<const float> logits) { accept(sampler_.next(logits, context_, candidates_)); }

  void accept(tokenizer::TokenId token) {
    context_.push_back(token);
    result_.tokens.push_back(token);
    if (!request_.ignore_eos && std::find(eos_.begin(), eos_.end(), token) != eos_.end())
      return close(StopReason::kEos);
    give_out(decoder_ ? stops_.append(decoder_->append(token)) : std::string());
    if (stops_.found()) return close(StopReason::kStopString);
    // The last token, which ends the request or fills the context, needs no step of its own.
    const std::size_t used = begins_.size() + result_.tokens.size() - 1;
    if (result_.tokens.size() == request_.max_tokens)
      close(StopReason::kLength);
    else if (used == sequence_->positions())
      close(StopReason::kContext);
  }

  GenerateResult finish() {
    if (decoder_) {
      if (!stops_.found()) {
        std::string rest = stops_.append(decoder_->finish());
        if (!stops_.found()) rest += stops_.finish();
        if (!rest.empty()) give_out(rest);
      }
      result_.text = text_;
    }
    return std::move(result_);
  }

 private:
  void give_out(const std::string& piece) {
    text_ += piece;
    if (request_.on_text) request_.on_text(piece, result_.tokens.size());
  }
  void close(StopReason reason) {
    result_.reason = reason;
    if (!result_.tokens.empty()) result_.decode_s = seconds(Clock::now() - decode_start_);
    open_ = false;
  }

  const GenerateRequest& request_;
  const std::vector<tokenizer::TokenId>& eos_;
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  const std::span<Candidate> candidates_;         // scratch that all sequences share
  bool encoded_;                                  // or there is no encoder
  const std::vector<tokenizer::TokenId> begins_;  // tokens that the decoder starts from
  std::vector<tokenizer::TokenId> context_;       // these and the answer
  std::optional<tokenizer::StreamDecoder> decoder_;
  StopStrings stops_;
  GenerateResult result_;
  std::string text_;
  tokenizer::TokenId first_token_ = 0;  // drawn at once: logits of all sequences would take much memory
  Clock::time_point decode_start_;
  bool open_ = true;
};

}  // namespace

bool draws(std::span<const GenerateRequest> requests) {
  return std::ranges::any_of(
      requests, [](const GenerateRequest& request) { return !request.sampler.takes_likeliest(); });
}

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"length", "context", "eos", "stop", "interrupted"};
  return kNames[static_cast<int>(reason)];
}

std::vector<StopReason> stop_reasons(std::span<const GenerateResult> results) {
  std::vector<StopReason> reasons;
  for (const GenerateResult& result : results) reasons.push_back(result.reason);
  return reasons;
}

std::vector<GenerateResult> generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                                     std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) check(engine, tokenizer, request);
  SLUICE_CHECK(requests.size() <= engine.plan().sequences, "the plan has room for fewer sequences");
  SLUICE_CHECK(!draws(requests) || engine.plan().draws, "the plan has no room for drawing tokens");
  std::deque<Stream> streams;
  for (const GenerateRequest& request : requests) streams.emplace_back(engine, tokenizer, request);
  const auto start = Clock::now();
  for (Stream& stream : streams) stream.prefill(engine, start);
  for (Stream& stream : streams) stream.take_first();

  std::vector<tokenizer::TokenId> tokens;
  std::vector<SequenceSpan> spans;
  std::vector<Stream*> open;
  for (;;) {
    tokens.clear();
    spans.clear();
    open.clear();
    for (Stream& stream : streams) {
      if (stream.stop_if_asked() || !stream.open()) continue;
      spans.push_back({stream.sequence(), tokens.size(), 1, StepKind::kDecode});
      tokens.push_back(stream.last_token());
      open.push_back(&stream);
    }
    if (open.empty()) break;
    engine.step({tokens, spans},
                {[](std::size_t) { return true; },
                 [&](std::size_t t, std::span<const float> logits) { open[t]->take(logits); }});
  }
  std::vector<GenerateResult> results;
  for (Stream& stream : streams) results.push_back(stream.finish());
  return results;
}

GenerateResult generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                        const GenerateRequest& request) {
  return std::move(generate(engine, tokenizer, {&request, 1}).front());
}

}  // namespace sluice::engine
