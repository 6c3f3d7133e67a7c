#include "work_memory.h"

#include "base/compared_bytes.h"
#include "base/error.h"

namespace sluice::app {

Bytes work_memory(const std::string& memory, const std::string& work) {
  constexpr Bytes kLeast = 64 * kMiB;
  const Bytes given = parse_size(memory, "--memory");
  if (given < kLeast) {
    const ComparedBytes sizes = compared_bytes(kLeast, given);
    throw Error(ErrorKind::kUsage, "too little memory to " + work + " with")
        .in("--memory")
        .expected(sizes.expected + " or more")
        .found(sizes.found)
        .fix("give more, or leave --memory out");
  }
  return given / 2;
}

}  // namespace sluice::app
