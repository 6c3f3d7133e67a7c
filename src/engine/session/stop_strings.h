// Cuts a text off before the first stop string, and passes it on as early as possible.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::engine {

// Holds back the tail of the text that may begin a stop string. Thread-compatible.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);
  // Adds text; returns text that certainly precedes any stop string. Returns nothing more after found().
  std::string append(const std::string& text);
  std::string finish();  // the held text, if the text ends without a stop string
  bool found() const { return found_ != kNone; }
  std::size_t which() const { return found_; }  // its index among the strings; REQUIRES: found()

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<std::string> stops_;
  std::string held_;
  std::size_t found_ = kNone;
};

}  // namespace sluice::engine
