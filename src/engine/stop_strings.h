// Text that ends before the first stop string, given out as early as possible.
#pragma once

#include <string>
#include <vector>

namespace sluice::engine {

// Holds back the tail of the text that may be the beginning of a stop string. Thread-compatible.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);
  // Adds text; returns what is now known to stand before any stop string. After found() nothing more comes.
  std::string append(const std::string& text);
  std::string finish();  // what is held back, when the text ends without a stop string
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace sluice::engine
