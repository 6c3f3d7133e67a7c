#include "serve/event_queue.h"

#include <utility>
#include <variant>

namespace sluice::serve {
namespace {

std::size_t bytes_of_scores(const std::vector<ScoredToken>& tokens) {
  std::size_t bytes = tokens.size() * sizeof(ScoredToken);
  for (const ScoredToken& token : tokens) bytes += token.top.size() * sizeof(RankedToken);
  return bytes;
}

std::size_t bytes_of_event(const AnswerEvent& event) {
  std::size_t bytes = sizeof(AnswerEvent);
  if (const auto* text = std::get_if<TextDelta>(&event.body)) {
    bytes += text->text.size() + bytes_of_scores(text->tokens);
  } else if (const auto* scores = std::get_if<PromptScores>(&event.body)) {
    bytes += bytes_of_scores(scores->tokens);
  } else if (const auto* reasoning = std::get_if<ReasoningDelta>(&event.body)) {
    bytes += reasoning->text.size();
  } else if (const auto* arguments = std::get_if<ToolArguments>(&event.body)) {
    bytes += arguments->fragment.size();
  }
  return bytes;
}

bool is_last(const AnswerEvent& event) {
  return std::holds_alternative<Finish>(event.body) || std::holds_alternative<Failure>(event.body);
}

}  // namespace

bool EventQueue::push(AnswerEvent event) {
  event.published = std::chrono::steady_clock::now();
  const std::size_t bytes = bytes_of_event(event);
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  if (bytes_ + bytes > most_bytes_ && !is_last(event)) {
    overflowed_ = true;
    return false;
  }
  const bool was_empty = events_.empty();
  events_.push_back(std::move(event));
  bytes_ += bytes;
  if (was_empty && wake_) wake_();
  return true;
}

std::vector<AnswerEvent> EventQueue::take() {
  std::vector<AnswerEvent> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(events_);
  bytes_ = 0;
  return taken;
}

void EventQueue::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  if (wake_ && !events_.empty()) wake_();
}

void EventQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  events_.clear();
  bytes_ = 0;
  wake_ = nullptr;
}

bool EventQueue::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

std::size_t EventQueue::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace sluice::serve
