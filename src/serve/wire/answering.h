// Takes a request from its submission to the last byte of its answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "serve/event_queue.h"
#include "serve/wire/answer_format.h"
#include "serve/wire/service.h"

namespace sluice::serve {

// Runs on the thread of its connection.
class Answering : public std::enable_shared_from_this<Answering> {
 public:
  // Submits, or throws the ApiError of a refusal; then answers by itself. REQUIRES: at least one sequence
  // `headers`: more of them.
  static void start(const Call& call, std::vector<TextRequest> sequences,
                    std::unique_ptr<AnswerFormat> format, http::Headers headers = {});

  Answering(const Call& call, std::unique_ptr<AnswerFormat> format, std::size_t sequences,
            http::Headers headers);
  ~Answering();

  void interrupt();  // thread-safe: the server stops

 private:
  struct Clock {                                                // the clock of one sequence
    std::optional<std::chrono::steady_clock::time_point> last;  // token
    bool ended = false;
  };

  void submit(std::vector<TextRequest> sequences);
  void listen();
  void drain();
  bool give_events();  // false: nothing was there
  bool hold(const AnswerEvent& event);
  void take(const AnswerEvent& event);
  void measure(const AnswerEvent& event);
  void finish_sequence(std::size_t sequence, const Finish& finish);
  void fail(const Failure& failure);
  void fail_as(const ApiError& error, const char* reason);
  void finish();
  void lost(std::string_view why);
  void ping_later();
  void ping();
  Waiting waiting() const;
  void over();  // nothing comes any more

  const Call call_;
  const std::unique_ptr<AnswerFormat> format_;
  const http::Headers headers_;
  const std::shared_ptr<EventQueue> queue_;
  std::vector<Clock> clocks_;
  std::size_t open_ = 0;  // sequences
  std::size_t held_ = 0;  // bytes of an answer that does not stream
  RequestId id_ = 0;
  PrefillProgress prefill_;
  bool over_ = false, admitted_ = false, sent_since_ping_ = false;
};

}  // namespace sluice::serve
