#include "lab/machine/hybrid_machine.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/scratch_directory.h"
#include "experts/decision_log.h"

namespace sluice::lab {
namespace {

TEST(HybridMachine, PresetsAreFoundAndDiffer) {
  std::set<std::uint64_t> hashes;
  for (const HybridMachine& machine : hybrid_machines()) {
    EXPECT_TRUE(is_hybrid_machine(machine.name));
    EXPECT_EQ(find_hybrid_machine(machine.name).expert_bytes, machine.expert_bytes);
    EXPECT_TRUE(hashes.insert(experts::hash_of(machine.costs)).second) << machine.name;
    EXPECT_FALSE(machine.source.empty());
  }
  EXPECT_EQ(hybrid_machines()[0].expert_bytes, 17301504u);
  EXPECT_FALSE(is_hybrid_machine("slicemoe"));
  EXPECT_THROW(find_hybrid_machine("slicemoe"), Error);
}

TEST(HybridMachine, AFileSaysTheSameAsItsText) {
  const HybridMachine& machine = hybrid_machines()[2];
  const Json json = to_json(machine);
  const HybridMachine read = hybrid_machine_from_json(json, "here.json");
  EXPECT_EQ(to_json(read), json);
  EXPECT_EQ(read.costs.run.of(3), machine.costs.run.of(3));
  for (const char* part : {"cpu", "device", "link"})
    for (const auto& [key, value] : json[part].items()) {
      Json broken = json;
      broken[part].erase(key);
      if (key == "duplex")
        EXPECT_TRUE(hybrid_machine_from_json(broken, "here.json").costs.device.full_duplex);
      else
        EXPECT_THROW(hybrid_machine_from_json(broken, "here.json"), Error) << part << ' ' << key;
      broken[part][key] = -1;
      EXPECT_THROW(hybrid_machine_from_json(broken, "here.json"), Error) << part << ' ' << key;
    }
  Json half = json;
  half["link"]["duplex"] = "half";
  const HybridMachine shared = hybrid_machine_from_json(half, "here.json");
  EXPECT_FALSE(shared.costs.device.full_duplex);
  EXPECT_EQ(to_json(shared), half);
  EXPECT_NE(experts::hash_of(shared.costs), experts::hash_of(read.costs));
}

TEST(HybridMachine, ALinkMayBeLimited) {
  const HybridMachine machine = hybrid_machines()[0];  // 17301504 bytes in 541 µs: 32 GB/s
  HybridMachine limited = machine;
  limit_link(40e9, limited);
  EXPECT_EQ(experts::hash_of(limited.costs), experts::hash_of(machine.costs));
  limit_link(1e9, limited);
  EXPECT_DOUBLE_EQ(limited.costs.device.transfer, 17301504 / 1e9);
  EXPECT_DOUBLE_EQ(limited.costs.device.row / machine.costs.device.row,
                   limited.costs.device.transfer / machine.costs.device.transfer);
  EXPECT_NE(limited.source.find("limited to 1 GB/s"), std::string::npos);
}

TEST(HybridMachine, AProfileWithADeviceIsOne) {
  engine::Profile profile;
  profile.model.architecture = "fable";
  profile.model.full = 2000;
  profile.machine = {"a CPU", "avx2", "direct", 2};
  profile.p_of_tokens = {{1, {9, 0}}};
  engine::DeviceProfile device;
  device.device = "emulated";
  device.expert = 1000;
  device.row = 8;
  device.host = {{1, {2e-3, 0}}, {4, {3e-3, 0}}};
  device.run = {{1, {1e-3, 0}}};
  device.idle = {4e6, 1e-5};
  device.busy = {2e6, 1e-5};
  device.attention = {{1, {5e-4, 0}}};
  profile.device = device;
  const testing::ScratchDirectory directory;
  const std::string path = directory.file("p.json");
  write_file_atomically(path, engine::to_json(profile).dump());
  EXPECT_TRUE(is_hybrid_machine(path));
  const HybridMachine machine = find_hybrid_machine(path);
  EXPECT_EQ(experts::hash_of(machine.costs), experts::hash_of(profile.device_costs()));
  EXPECT_EQ(machine.expert_bytes, 1000u);
  EXPECT_EQ(machine.expert_bits, 8);
  EXPECT_EQ(machine.buffers, 2u);
  EXPECT_EQ(machine.costs.run.of(4), 3e-3);
  EXPECT_EQ(to_json(machine).at("cpu").at("measured_s").size(), 2u);
  profile.device.reset();
  write_file_atomically(path, engine::to_json(profile).dump());
  EXPECT_THROW(find_hybrid_machine(path), Error);
}

}  // namespace
}  // namespace sluice::lab
