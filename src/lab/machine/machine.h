// The hardware on which slices of experts are replayed: Flash holds the model, DRAM holds the cache, and one
// unit computes. Rates and energies are constants; there is no other state. SliceMoE; SPEC §4.1.
#pragma once

#include <string>

#include "base/json/json.h"

namespace sluice::lab {

// Bytes moved, and operations (two for a multiplication and addition).
struct Traffic {
  double flash = 0;  // read from Flash and written to DRAM
  double dram_read = 0;
  double dram_written = 0;  // besides the bytes from Flash
  double ops = 0;

  Traffic& operator+=(const Traffic& other);
};

// Joules by consumer.
struct Energy {
  double flash = 0, dram_read = 0, dram_write = 0, compute = 0;

  double total() const { return flash + dram_read + dram_write + compute; }
  Energy& operator+=(const Energy& other);
};

struct Machine {
  std::string name;
  double flash_bits_per_s = 0, flash_joules_per_bit = 0;
  double dram_bits_per_s = 0, dram_joules_per_bit = 0;  // read or written
  double xpu_ops_per_s = 0, xpu_ops_per_joule = 0;

  double flash_s(double bytes) const { return 8 * bytes / flash_bits_per_s; }
  // Seconds that the unit is busy: with operations, while its operands come from DRAM.
  double compute_s(double dram_bytes, double ops) const;
  Energy energy(const Traffic& traffic) const;
};

// `slicemoe`: UFS 3.1, LPDDR4 and an XPU of 8192 8-bit units at 1 GHz.
const Machine& slicemoe_machine();

// {"name": …, "flash": {"bits_per_s", "joules_per_bit"}, "dram": {the same}, "xpu": {"ops_per_s",
// "ops_per_joule"}}: numbers > 0, all needed; docs/replay.md. Error(kInvalid) naming `path` and the field.
Machine machine_from_json(const Json& json, const std::string& path);
Json to_json(const Machine& machine);

// The preset with that name, or the file. Error(kUsage) for a name that is neither; otherwise as
// machine_from_json.
Machine find_machine(const std::string& name_or_file);

}  // namespace sluice::lab
