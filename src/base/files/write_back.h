// Sends a file that grows to the disk while it grows, so that the sync at its end, which nothing can
// interrupt, has little left to wait for.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice {

// One for each file. Not thread-safe.
class WriteBack {
 public:
  // At most twice this many bytes wait for the disk: 0.1 s for one that writes 150 MB/s.
  static constexpr Bytes kStep = 8 * kMiB;

  // Call it after every write, with the bytes written. Every kStep bytes it waits for those of the step
  // before. Error(kIo) if the disk has refused some.
  void wrote(int fd, Bytes bytes, const std::string& path);

 private:
  Bytes kept_ = 0;  // bytes of this step, which nobody has sent yet
};

}  // namespace sluice
