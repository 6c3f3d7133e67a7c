#include "serve/wire/answering.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/error.h"
#include "base/setting.h"
#include "serve/wire/refusal_error.h"

namespace sluice::serve {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Bytes on their way to a client, beyond which further events wait in their queue.
constexpr std::size_t kEnoughUnsent = 4 << 10;

bool is_token(const EventBody& body) {
  return std::holds_alternative<TextDelta>(body) || std::holds_alternative<ReasoningDelta>(body) ||
         std::holds_alternative<ToolBegin>(body) || std::holds_alternative<ToolArguments>(body);
}

http::Response stream_head(const http::Headers& headers) {
  http::Response head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  head.headers.insert(head.headers.end(), headers.begin(), headers.end());
  return head;
}

}  // namespace

std::string waiting_comment(const Waiting& waiting) {
  if (waiting.place) return fmt::format(": waiting {} of {}\n\n", waiting.place->place, waiting.place->of);
  return fmt::format(": prefill {} of {}\n\n", waiting.prefill.done, waiting.prefill.total);
}

void AnswerFormat::ping(const Waiting& waiting, std::string& out) { out += waiting_comment(waiting); }

void Answering::start(const Call& call, std::vector<TextRequest> sequences,
                      std::unique_ptr<AnswerFormat> format, http::Headers headers) {
  const auto self =
      std::make_shared<Answering>(call, std::move(format), sequences.size(), std::move(headers));
  self->prefill_.total = sequences.front().prompt.size();
  self->submit(std::move(sequences));
  self->listen();
}

Answering::Answering(const Call& call, std::unique_ptr<AnswerFormat> format, std::size_t sequences,
                     http::Headers headers)
    : call_(call),
      format_(std::move(format)),
      headers_(std::move(headers)),
      queue_(call.service.queues->make()),
      clocks_(sequences),
      open_(sequences) {
  ++call_.service.answers;
}

Answering::~Answering() {
  {
    const std::lock_guard lock(call_.service.mutex);
    call_.service.answering.erase(this);
  }
  call_.service.queues->give(held_);
  --call_.service.answers;
}

void Answering::submit(std::vector<TextRequest> sequences) {
  const bool plural = sequences.front().parsing.has_value();
  auto outcome = call_.service.backend.submit(std::move(sequences), queue_);
  if (const auto* refusal = std::get_if<Refusal>(&outcome))
    throw refusal_error(*refusal, plural ? "messages" : "prompt");
  id_ = std::get<RequestId>(outcome);
}

void Answering::listen() {
  {
    const std::lock_guard lock(call_.service.mutex);
    call_.service.answering.emplace(this, weak_from_this());
  }
  call_.writer->on_gone([self = shared_from_this()](std::string_view why) { self->lost(why); });
  if (format_->streams()) {
    call_.writer->begin(stream_head(headers_));
    std::string first;
    format_->begin(waiting(), first);
    call_.writer->write(first);
  }
  if (call_.writer->gone()) return;
  queue_->set_wake([self = shared_from_this()] { self->call_.writer->post([self] { self->drain(); }); });
  if (!format_->streams()) return;
  call_.writer->on_sent([self = shared_from_this()] { self->drain(); });
  ping_later();
}

// Events stay in their queue until the client has read what came before them.
void Answering::drain() {
  while (!over_ && (call_.writer->unsent() < kEnoughUnsent || queue_->spilled()) && give_events()) {
  }
}

bool Answering::give_events() {
  std::string out;
  const std::vector<AnswerEvent> events = queue_->take(kEnoughUnsent);
  for (const AnswerEvent& event : events) {
    measure(event);
    if (const auto* failure = std::get_if<Failure>(&event.body)) {
      call_.writer->write(out);
      fail(*failure);
      return false;
    }
    if (!format_->streams() && !hold(event)) return false;
    format_->give(event, out);
    take(event);
  }
  if (!out.empty()) {
    sent_since_ping_ = true;
    call_.writer->write(out);
  }
  if (open_ == 0 && !over_) finish();
  return !events.empty();
}

// What does not stream is kept until its end.
bool Answering::hold(const AnswerEvent& event) {
  const std::size_t bytes = bytes_of_event(event);
  if (call_.service.queues->take(bytes)) {
    held_ += bytes;
    return true;
  }
  fail_as(
      ApiError(503, "out_of_memory_budget", "there is no memory for an answer of this length").retry_after(5),
      "error");
  return false;
}

void Answering::take(const AnswerEvent& event) {
  if (const auto* progress = std::get_if<PrefillProgress>(&event.body)) prefill_ = *progress;
  if (const auto* admitted = std::get_if<Admitted>(&event.body)) {
    admitted_ = true;
    prefill_ = {admitted->cached, admitted->prompt, admitted->cached, 0};
  }
  if (const auto* finish = std::get_if<Finish>(&event.body)) finish_sequence(event.sequence, *finish);
}

void Answering::measure(const AnswerEvent& event) {
  ServiceMetrics& metrics = call_.service.metrics;
  Clock& clock = clocks_.at(event.sequence);
  if (!is_token(event.body)) return;
  if (clock.last) {
    metrics.token_gap.add(seconds_between(*clock.last, event.published));
  } else {
    metrics.first_token.add(seconds_between(call_.request().complete, event.published));
  }
  clock.last = event.published;
}

void Answering::finish_sequence(std::size_t sequence, const Finish& finish) {
  if (std::exchange(clocks_.at(sequence).ended, true)) return;
  --open_;
  ServiceMetrics& metrics = call_.service.metrics;
  metrics.add("request_success_total", finish_name(finish.reason));
  metrics.prompt_tokens += finish.usage.prompt;
  metrics.prefix_hits += finish.usage.cached;
  metrics.generation_tokens += finish.usage.generated;
  metrics.reasoning_tokens += finish.usage.reasoning;
  metrics.queue.add(finish.timings.queue_ms / 1000);
  metrics.prefill.add(finish.timings.prompt_ms / 1000);
  metrics.decode.add(finish.timings.predicted_ms / 1000);
  metrics.prompt_size.add(static_cast<double>(finish.usage.prompt));
  metrics.answer_size.add(static_cast<double>(finish.usage.generated));
  http::AccessRecord& record = call_.writer->record();
  record.prompt_tokens += finish.usage.prompt;
  record.cached_tokens += finish.usage.cached;
  record.answer_tokens += finish.usage.generated;
  record.queue_ms = std::max(record.queue_ms, finish.timings.queue_ms);
  record.prompt_ms = std::max(record.prompt_ms, finish.timings.prompt_ms);
  record.predicted_ms = std::max(record.predicted_ms, finish.timings.predicted_ms);
  record.ending = finish_name(finish.reason);
}

void Answering::fail(const Failure& failure) {
  // A request that still waits when the server stops is refused, like one that comes then.
  const bool refused = failure.kind == Failure::Kind::kDraining && !admitted_;
  const char* const reason = failure.kind == Failure::Kind::kError ? "error"
                             : refused                             ? "refused"
                                                                   : "cancelled";
  fail_as(failure_error(failure), reason);
}

void Answering::fail_as(const ApiError& error, const char* reason) {
  call_.writer->record().ending = reason;
  call_.service.metrics.add("request_failure_total", reason);
  over();
  call_.service.backend.cancel(id_);
  if (!format_->streams()) {
    call_.writer->send(error_response(error, call_.style, call_.request().id));
    return;
  }
  std::string out;
  format_->fail(error, out);
  call_.writer->write(out);
  call_.writer->end(true);
}

void Answering::finish() {
  call_.service.metrics.whole.add(
      seconds_between(call_.request().complete, std::chrono::steady_clock::now()));
  over();
  if (!format_->streams()) {
    http::Response response;
    response.body = format_->whole();
    response.headers = headers_;
    return call_.writer->send(std::move(response));
  }
  std::string out;
  format_->end(out);
  call_.writer->write(out);
  call_.writer->end();
}

void Answering::lost(std::string_view) {
  if (over_) return;
  call_.service.metrics.add("request_failure_total", "cancelled");
  over();
  call_.service.backend.cancel(id_);
}

void Answering::interrupt() {
  call_.writer->post([self = shared_from_this()] {
    if (!self->over_) self->fail({Failure::Kind::kDraining, "the server stops"});
  });
}

void Answering::over() {
  over_ = true;
  queue_->close();
}

Waiting Answering::waiting() const { return {call_.service.backend.place_of(id_), prefill_}; }

void Answering::ping_later() {
  if (call_.service.options.sse_ping.count() == 0) return;
  call_.writer->after(call_.service.options.sse_ping, [self = shared_from_this()] { self->ping(); });
}

void Answering::ping() {
  if (over_) return;
  if (!std::exchange(sent_since_ping_, false)) {
    std::string out;
    format_->ping(waiting(), out);
    call_.writer->write(out);
  }
  ping_later();
}

}  // namespace sluice::serve
