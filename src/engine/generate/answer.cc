#include "engine/generate/answer.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::max(0.0, std::chrono::duration<double>(time).count());
}

}  // namespace

Answer::Answer(const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request, Time start)
    : request_(request), start_(start), stops_(request.stop), last_(start) {
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, request.special);
}

template <class Body>
bool Answer::guarded(const Body& body) {
  if (thrown_) return false;
  try {
    body();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  return !thrown_;
}

bool Answer::wants_to_stop() {
  bool stops = false;
  return !guarded([&] { stops = request_.should_stop && request_.should_stop(); }) || stops;
}

bool Answer::on_token(const BatchToken& token) {
  last_ = std::chrono::steady_clock::now();
  if (!first_) first_ = last_;
  result_.tokens.push_back(token.id);
  if (token.ends) return true;
  if (!guarded([&] { give_out(decoder_ ? stops_.append(decoder_->append(token.id)) : std::string()); }))
    return false;
  return !stops_.found() && result_.tokens.size() < request_.max_tokens;
}

void Answer::on_end(const BatchEnd& end) {
  if (!first_) last_ = std::chrono::steady_clock::now();
  result_.statistics = end.statistics;
  result_.reason = end.reason;
  // A request whose room may end before its tokens has no limit of its own.
  if (end.reason == StopReason::kStopString && !stops_.found()) result_.reason = StopReason::kLength;
  if (end.error && !thrown_) thrown_ = std::make_exception_ptr(*end.error);
}

void Answer::check() const {
  if (thrown_) std::rethrow_exception(thrown_);
}

GenerateResult Answer::finish(Time decoding) {
  if (decoder_) {
    if (!stops_.found()) {
      std::string rest = stops_.append(decoder_->finish());
      if (!stops_.found()) rest += stops_.finish();
      if (!rest.empty()) give_out(rest);
    }
    result_.text = text_;
  }
  result_.prefill_s = seconds(first_.value_or(last_) - start_);
  if (first_) result_.decode_s = seconds(last_ - decoding);
  return std::move(result_);
}

void Answer::give_out(const std::string& piece) {
  text_ += piece;
  if (request_.on_text) request_.on_text(piece, result_.tokens.size());
}

}  // namespace sluice::engine
