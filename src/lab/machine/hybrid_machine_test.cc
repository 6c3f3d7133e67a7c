#include "lab/machine/hybrid_machine.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
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
      EXPECT_THROW(hybrid_machine_from_json(broken, "here.json"), Error) << part << ' ' << key;
      broken[part][key] = -1;
      EXPECT_THROW(hybrid_machine_from_json(broken, "here.json"), Error) << part << ' ' << key;
    }
}

}  // namespace
}  // namespace sluice::lab
