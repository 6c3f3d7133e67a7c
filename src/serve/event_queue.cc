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

bool is_last(const AnswerEvent& event) {
  return std::holds_alternative<Finish>(event.body) || std::holds_alternative<Failure>(event.body);
}

}  // namespace

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

EventQueue::~EventQueue() {
  if (queues_ == nullptr) return;
  queues_->forget(this);
  queues_->give(bytes_);
}

EventQueue::Pushed EventQueue::try_push(AnswerEvent& event) {
  const bool last = is_last(event);
  std::size_t bytes = last ? 0 : bytes_of_event(event);
  const std::lock_guard lock(mutex_);
  if (closed_ || spilled_) return Pushed::kNever;
  if (bytes_ + bytes > most_bytes_) return Pushed::kNoRoom;
  if (queues_ != nullptr && bytes > 0 && !queues_->take(bytes)) return Pushed::kNoRoom;
  const bool was_empty = events_.empty();
  events_.push_back(std::move(event));
  bytes_ += bytes;
  if (was_empty && wake_) wake_();
  return Pushed::kDone;
}

bool EventQueue::push(AnswerEvent event) {
  event.published = std::chrono::steady_clock::now();
  Pushed pushed = try_push(event);
  // Not under the mutex: another queue may be emptied for this one.
  if (pushed == Pushed::kNoRoom && queues_ != nullptr && bytes() + bytes_of_event(event) <= most_bytes_ &&
      queues_->make_room(this))
    pushed = try_push(event);
  if (pushed == Pushed::kNoRoom) spill();
  return pushed == Pushed::kDone;
}

std::vector<AnswerEvent> EventQueue::take(std::size_t most) {
  std::vector<AnswerEvent> taken;
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  while (!events_.empty() && (taken.empty() || bytes < most)) {
    if (!spilled_ && !is_last(events_.front())) bytes += bytes_of_event(events_.front());
    taken.push_back(std::move(events_.front()));
    events_.pop_front();
  }
  bytes_ -= bytes;
  if (queues_ != nullptr) queues_->give(bytes);
  return taken;
}

void EventQueue::give_all() {
  events_.clear();
  if (queues_ != nullptr) queues_->give(bytes_);
  bytes_ = 0;
}

void EventQueue::spill() {
  const std::lock_guard lock(mutex_);
  if (closed_ || spilled_) return;
  give_all();
  spilled_ = true;
  AnswerEvent& failure = events_.emplace_back();
  failure.body =
      Failure{Failure::Kind::kCancelled, "its answer was not read in time, or there is no memory for it"};
  failure.published = std::chrono::steady_clock::now();
  if (wake_) wake_();
}

void EventQueue::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  if (wake_ && !events_.empty()) wake_();
}

void EventQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  give_all();
  wake_ = nullptr;
}

bool EventQueue::spilled() const {
  const std::lock_guard lock(mutex_);
  return spilled_;
}

std::size_t EventQueue::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace sluice::serve
