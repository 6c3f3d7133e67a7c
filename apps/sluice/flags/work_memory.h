// The memory of the commands that turn a model into a store and back, and check it.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::app {

// The value of Setting::kMemory for `work` ("pack", "unpack" …), and what the process takes of it when the
// object is made.
class WorkMemory {
 public:
  // Error(kUsage) if it is too little for any such work. From then on large blocks that are freed go back to
  // the system at once, so that none is kept beside those in progress.
  WorkMemory(const std::string& memory, std::string work);

  // How many bytes may be in progress at a time: half of what the process leaves; the rest is for codec
  // contexts and more tables.
  Bytes in_progress() const { return (given_ - taken_) / 2; }
  // Error(kUsage) with the least that would do unless this many bytes may be in progress.
  void check(Bytes least) const;

 private:
  [[noreturn]] void refuse(Bytes least) const;

  std::string work_;
  Bytes given_, taken_;
};

}  // namespace sluice::app
