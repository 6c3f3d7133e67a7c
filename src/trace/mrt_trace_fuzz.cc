// Any bytes as a .mrt: an Error, or events that hold what readers promise.
#include <cstddef>
#include <cstdint>

#include "trace/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::trace;  // NOLINT
  const std::string bytes = "MRT1" + std::string(reinterpret_cast<const char*>(data), size);
  try {
    all_events(*open_text(bytes));
  } catch (const sluice::Error&) {
  }
  return 0;
}
