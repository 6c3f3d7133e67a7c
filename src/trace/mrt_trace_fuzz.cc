// Reads any bytes as a .mrt file: either an Error, or events that keep the reader's promises.
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
