#include "flags/work_memory.h"

#include <algorithm>
#include <utility>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"

namespace sluice::app {

WorkMemory::WorkMemory(const std::string& memory, std::string work)
    : work_(std::move(work)), given_(parse_size(memory, Setting::kMemory)) {
  return_large_blocks();
  taken_ = read_process_memory().resident;
  constexpr Bytes kLeast = 64 * kMiB;
  const Bytes least = std::max(kLeast, taken_ + kLeast / 2);
  if (given_ < least) refuse(least);
}

void WorkMemory::check(Bytes least) const {
  constexpr Bytes kOtherStart = kMiB;  // what the program takes differs a little from start to start
  if (least > in_progress()) refuse(round_up(taken_ + 2 * least + kOtherStart, kMiB));
}

void WorkMemory::refuse(Bytes least) const {
  const ComparedBytes sizes = compared_bytes(least, given_);
  throw Error(ErrorKind::kUsage, "too little memory to " + work_ + " with")
      .in(Setting::kMemory)
      .expected(sizes.expected + " or more")
      .found(sizes.found)
      .fix("give more");
}

}  // namespace sluice::app
