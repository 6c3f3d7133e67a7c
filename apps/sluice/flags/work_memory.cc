#include "flags/work_memory.h"

#include <algorithm>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"

namespace sluice::app {

Bytes work_memory(const std::string& memory, const std::string& work) {
  constexpr Bytes kLeast = 64 * kMiB;
  const Bytes given = parse_size(memory, Setting::kMemory), taken = read_process_memory().resident;
  const Bytes least = std::max(kLeast, taken + kLeast / 2);
  if (given < least) {
    const ComparedBytes sizes = compared_bytes(least, given);
    throw Error(ErrorKind::kUsage, "too little memory to " + work + " with")
        .in(Setting::kMemory)
        .expected(sizes.expected + " or more")
        .found(sizes.found)
        .fix("give more, or leave " + Setting::kMemory + " out");
  }
  return (given - taken) / 2;
}

}  // namespace sluice::app
