// Progress of a long command on standard error: a bar with rate and time left on a terminal, a plain line
// every few seconds elsewhere, nothing under --quiet. NO_COLOR is respected.
#pragma once

#include <chrono>
#include <string>

#include "base/bytes.h"

namespace sluice::app {

enum class Verbosity { kQuiet, kNormal };

class Progress {
 public:
  enum class Unit { kBytes, kCount };
  Progress(std::string label, Bytes total, Verbosity verbosity, Unit unit = Unit::kBytes);
  ~Progress();              // ends the line
  void update(Bytes done);  // cheap; draws at most ten times a second

 private:
  void draw(Bytes done, bool last);
  std::string label_;
  Unit unit_;
  Bytes total_, done_ = 0, first_ = 0;
  bool terminal_ = false, quiet_ = false, drawn_ = false, started_ = false;
  std::chrono::steady_clock::time_point start_, drawn_at_;
};

}  // namespace sluice::app
