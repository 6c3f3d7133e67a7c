// How an API words an answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "serve/answer_event.h"
#include "serve/backend.h"
#include "serve/wire/api_error.h"

namespace sluice::serve {

// What a request waits for, to be told while nothing else is.
struct Waiting {
  std::optional<QueuePlace> place;
  PrefillProgress prefill;
};

// Bytes of a stream are appended to `out`. An answer that does not stream uses give() and whole() alone.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  virtual bool streams() const = 0;
  virtual void begin(const Waiting& /*waiting*/, std::string& /*out*/) {}
  virtual void give(const AnswerEvent& event, std::string& out) = 0;
  virtual void ping(const Waiting& waiting, std::string& out);  // a comment line
  virtual void fail(const ApiError& error, std::string& out) = 0;
  virtual void end(std::string& /*out*/) {}  // all sequences have ended
  virtual std::string whole() = 0;           // a body of JSON
};

std::string waiting_comment(const Waiting& waiting);  // ": waiting 2 of 5\n\n"

}  // namespace sluice::serve
