#include "lab/machine/hybrid_machine.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

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

// SPEC §10 G1: the times of a copy, and how many of a layer's 64 experts the card holds.
TEST(HybridMachine, ThoseOfSmoeAreTheirPapers) {
  const auto at = [](const char* name, double copy, double host, std::vector<std::uint32_t> slots) {
    const HybridMachine machine = find_hybrid_machine(name);
    EXPECT_NEAR(1e3 * machine.costs.device.transfer, copy, .006) << name;
    EXPECT_NEAR(machine.costs.run.of(4), 4 * machine.costs.run.of(1), 1e-12) << "linear in the tokens";
    EXPECT_NEAR(1e3 * machine.costs.run.of(1), host, .002) << name;
    EXPECT_EQ(machine.costs.device.run.of(1), machine.costs.device.run.of(8)) << "flat";
    EXPECT_LT(machine.costs.device.run.of(1), machine.costs.run.of(1)) << name;
    std::vector<std::uint32_t> found;
    for (const double share : machine.slot_shares) found.push_back(static_cast<std::uint32_t>(share * 64));
    EXPECT_EQ(found, slots) << name;
  };
  at("smoe-s1-25", .69, .692, {17});
  at("smoe-s1-75", .69, .231, {17});
  at("smoe-s2-25", 2.12, 1.062, {14, 25});
  at("smoe-s2-75", 2.12, .354, {14, 25});
  at("smoe-s3", 2.20, .734, {20});
}

TEST(HybridMachine, ABandIsItsTwoEnds) {
  const auto names = [](const char* name) {
    std::vector<std::string> all;
    for (const HybridMachine& machine : find_hybrid_band(name)) all.push_back(machine.name);
    return all;
  };
  EXPECT_EQ(names("smoe-s1"), (std::vector<std::string>{"smoe-s1-25", "smoe-s1-75"}));
  EXPECT_EQ(names("smoe-s2"), (std::vector<std::string>{"smoe-s2-25", "smoe-s2-75"}));
  EXPECT_EQ(names("smoe-s3"), std::vector<std::string>{"smoe-s3"});
  EXPECT_EQ(names("dali-3090"), std::vector<std::string>{"dali-3090"});
  EXPECT_THROW(find_hybrid_machine("smoe-s1"), Error);
  std::size_t machines = 0;
  for (const std::string& name : hybrid_machine_names()) {
    EXPECT_TRUE(is_hybrid_machine(name)) << name;
    machines += find_hybrid_band(name).size();
  }
  EXPECT_EQ(machines, hybrid_machines().size());
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
  profile.device->run.clear();  // its device has no kernels for the experts
  EXPECT_THROW(hybrid_machine_of(profile, "none.json"), Error);
  profile.device.reset();
  write_file_atomically(path, engine::to_json(profile).dump());
  EXPECT_THROW(find_hybrid_machine(path), Error);
}

}  // namespace
}  // namespace sluice::lab
