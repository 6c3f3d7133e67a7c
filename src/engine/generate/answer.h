// The answer to one request of generate(): its tokens as a Batcher gives them, and the text that they make.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>

#include "engine/batch/batch_request.h"
#include "engine/generate/generate.h"
#include "engine/session/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

// Thread-compatible. What it is given must outlive it.
class Answer final : public BatchClient {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `tokenizer` may be null. `start`: when generate() began.
  Answer(const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request, Time start);

  bool wants_to_stop() override;
  bool on_token(const BatchToken& token) override;
  void on_end(const BatchEnd& end) override;

  // Throws why there is no whole answer: what the request's functions have thrown, or the batcher's Error.
  void check() const;
  std::optional<Time> first_token() const { return first_; }
  // `decoding`: since when no prompt of the batch has been left. REQUIRES: it has ended
  GenerateResult finish(Time decoding);

 private:
  void give_out(const std::string& piece);
  // Runs `body`, and keeps what it throws. False: it has thrown, now or before.
  template <class Body>
  bool guarded(const Body& body);

  const GenerateRequest& request_;
  const Time start_;
  std::optional<tokenizer::StreamDecoder> decoder_;
  StopStrings stops_;
  std::string text_;
  std::optional<Time> first_;
  Time last_;  // token, or the end
  GenerateResult result_;
  std::exception_ptr thrown_;
};

}  // namespace sluice::engine
