// Progress of a long command on standard error: a bar with rate and time left on a terminal, a plain line
// every few seconds elsewhere, nothing where the user wants quiet or JSON. NO_COLOR is respected.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace sluice::app {

enum class Verbosity { kQuiet, kNormal };
constexpr Verbosity progress_verbosity(bool quiet, bool json) {
  return quiet || json ? Verbosity::kQuiet : Verbosity::kNormal;
}

class Progress {
 public:
  enum class Unit { kBytes, kCount };
  Progress(std::string label, Bytes total, Verbosity verbosity, Unit unit = Unit::kBytes);
  ~Progress() { end(); }
  void update(Bytes done);  // cheap; draws at most ten times a second
  void end();  // leaves the line as it is, for what is printed next; nothing is drawn from then on

 private:
  void draw(Bytes done, bool last);
  std::string label_;
  Unit unit_;
  Bytes total_, done_ = 0, first_ = 0;
  bool terminal_ = false, quiet_ = false, drawn_ = false, started_ = false;
  std::chrono::steady_clock::time_point start_, drawn_at_;
};

// A bar whose total comes with the first update; draws nothing before.
class ProgressOfTotal {
 public:
  ProgressOfTotal(std::string label, Verbosity verbosity) : label_(std::move(label)), verbosity_(verbosity) {}
  void update(Bytes done, Bytes total) {
    if (!progress_) progress_.emplace(label_, total, verbosity_);
    progress_->update(done);
  }

 private:
  std::string label_;
  Verbosity verbosity_;
  std::optional<Progress> progress_;
};

}  // namespace sluice::app
