#include "lab/machine/machine.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::lab {
namespace {

// Rates outside these bounds would make sums and quotients infinite.
constexpr double kLeast = 1e-30, kMost = 1e30;

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  flash += other.flash;
  dram_read += other.dram_read;
  dram_written += other.dram_written;
  ops += other.ops;
  return *this;
}

Energy& Energy::operator+=(const Energy& other) {
  flash += other.flash;
  dram_read += other.dram_read;
  dram_write += other.dram_write;
  compute += other.compute;
  return *this;
}

double Machine::compute_s(double dram_bytes, double ops) const {
  return std::max(8 * dram_bytes / dram_bits_per_s, ops / xpu_ops_per_s);
}

Energy Machine::energy(const Traffic& traffic) const {
  return {.flash = 8 * traffic.flash * flash_joules_per_bit,
          .dram_read = 8 * traffic.dram_read * dram_joules_per_bit,
          .dram_write = 8 * (traffic.flash + traffic.dram_written) * dram_joules_per_bit,
          .compute = traffic.ops / xpu_ops_per_joule};
}

const Machine& slicemoe_machine() {
  static const Machine machine = {.name = "slicemoe",
                                  .flash_bits_per_s = 10e9,
                                  .flash_joules_per_bit = 103e-12,
                                  .dram_bits_per_s = 104e9,
                                  .dram_joules_per_bit = 1.5e-12,
                                  .xpu_ops_per_s = 2 * 8192 * 1e9,
                                  .xpu_ops_per_joule = 3.18e12};
  return machine;
}

Machine machine_from_json(const Json& json, const std::string& path) {
  const JsonObject file(json, path);
  const JsonObject flash = file.object("flash"), dram = file.object("dram"), xpu = file.object("xpu");
  return {.name = file.string("name"),
          .flash_bits_per_s = flash.real("bits_per_s", kLeast, kMost),
          .flash_joules_per_bit = flash.real("joules_per_bit", kLeast, kMost),
          .dram_bits_per_s = dram.real("bits_per_s", kLeast, kMost),
          .dram_joules_per_bit = dram.real("joules_per_bit", kLeast, kMost),
          .xpu_ops_per_s = xpu.real("ops_per_s", kLeast, kMost),
          .xpu_ops_per_joule = xpu.real("ops_per_joule", kLeast, kMost)};
}

Json to_json(const Machine& machine) {
  return {
      {"name", machine.name},
      {"flash", {{"bits_per_s", machine.flash_bits_per_s}, {"joules_per_bit", machine.flash_joules_per_bit}}},
      {"dram", {{"bits_per_s", machine.dram_bits_per_s}, {"joules_per_bit", machine.dram_joules_per_bit}}},
      {"xpu", {{"ops_per_s", machine.xpu_ops_per_s}, {"ops_per_joule", machine.xpu_ops_per_joule}}}};
}

Machine find_machine(const std::string& name_or_file) {
  if (name_or_file == slicemoe_machine().name) return slicemoe_machine();
  if (!std::filesystem::exists(name_or_file))
    throw unknown_name(Setting::kMachine, name_or_file, {slicemoe_machine().name}, "no such machine",
                       "give slicemoe, or check the name of the file")
        .expected("slicemoe, or a JSON file (docs/replay.md, \"Slices on a modelled machine\")");
  return machine_from_json(read_json_file(name_or_file), name_or_file);
}

}  // namespace sluice::lab
