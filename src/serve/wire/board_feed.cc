#include "serve/wire/board_feed.h"

#include "serve/json/json_writer.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kKept = 32;

// Empty if nothing has changed.
std::string change_json(const ExpertBoard& before, const ExpertBoard& now, std::uint64_t sequence) {
  JsonWriter out;
  out.begin_object().member("sequence", sequence).key("set").begin_array();
  bool changed = false;
  for (std::size_t i = 0; i < now.state.size(); ++i) {
    if (i < before.state.size() && before.state[i] == now.state[i]) continue;
    out.begin_array().natural(i).natural(now.state[i]).end_array();
    changed = true;
  }
  out.end_array().key("used").begin_array();
  for (std::size_t i = 0; i < now.uses.size(); ++i) {
    if (i < before.uses.size() && before.uses[i] == now.uses[i]) continue;
    out.natural(i);
    changed = true;
  }
  out.end_array().end_object();
  return changed ? out.take() : std::string();
}

}  // namespace

std::uint64_t BoardFeed::sequence() const {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

std::size_t BoardFeed::watchers() const {
  const std::lock_guard lock(mutex_);
  return watchers_;
}

void BoardFeed::watch(Backend& backend, int by) {
  const std::lock_guard lock(mutex_);
  watchers_ = by > 0 ? watchers_ + 1 : watchers_ - 1;
  backend.set_watchers(watchers_);
  if (by < 0 || watchers_ > 1) return;
  // Nobody has watched: a number is left out, so that a watcher with an older picture asks for another one.
  ++sequence_;
  kept_.clear();
  last_ = backend.experts();
}

void BoardFeed::look(const Backend& backend) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kPeriod) return;
  looked_ = now;
  ExpertBoard board = backend.experts();
  std::string json = change_json(last_, board, sequence_ + 1);
  if (json.empty()) return;
  ++sequence_;
  kept_.push_back({sequence_, std::move(json)});
  if (kept_.size() > kKept) kept_.pop_front();
  last_ = std::move(board);
}

std::vector<BoardFeed::Change> BoardFeed::since(std::uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  std::vector<Change> changes;
  for (const Change& change : kept_)
    if (change.sequence > sequence) changes.push_back(change);
  return changes;
}

}  // namespace sluice::serve
