// Reads any bytes as a modelled machine: either a machine that is written as it was read and takes time, or
// an Error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "lab/machine/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  try {
    const lab::Machine machine =
        lab::machine_from_json(parse_json({reinterpret_cast<const char*>(data), size}, "data"), "data");
    const Json written = lab::to_json(machine);
    SLUICE_CHECK(lab::to_json(lab::machine_from_json(written, "written")) == written);
    SLUICE_CHECK(machine.flash_s(4096) > 0 && machine.compute_s(4096, 4096) > 0);
  } catch (const Error&) {
  }
  return 0;
}
