#include "engine/plan/named_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/device_presets.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

TEST(Named, IsTheRowOfItsNameOrNone) {
  Named<experts::CachePolicy> cache;
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(&cache.or_usual("lru"), &experts::find_cache("lru"));
  cache = "fifo";
  EXPECT_EQ(cache.row(), &experts::find_cache("fifo"));
  EXPECT_EQ(&cache.or_usual("lru"), cache.row());
  EXPECT_TRUE(cache == "fifo");
  EXPECT_FALSE(cache == "lru");
  cache = std::string();
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(Named<experts::PrefetchPolicy>("lookahead").row(), &experts::find_prefetch("stream"));
  cache = experts::find_cache("none");
  EXPECT_EQ(cache->name, "none");
  cache.clear();
  EXPECT_TRUE(cache.empty());
}

template <class Name>
std::string refused(const Name& name) {
  try {
    name();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return with_names(error.where());
  }
  return "";
}

TEST(Named, RefusesAnUnknownNameWhereItIsNamed) {
  EXPECT_EQ(refused([] { return Named<experts::RouterPolicy>("x"); }), "--router");
  EXPECT_EQ(refused([] { return Named<experts::CachePolicy>("x"); }), "--cache");
  EXPECT_EQ(refused([] { return Named<experts::SchedulerPolicy>("x"); }), "--scheduler");
  EXPECT_EQ(refused([] { return Named<experts::PrefetchPolicy>("x"); }), "--prefetch");
  EXPECT_EQ(refused([] { return Named<experts::PlacementPolicy>("x"); }), "--placement");
  EXPECT_EQ(refused([] { return NamedPreset("x"); }), "--preset");
}

TEST(NamedPreset, IsForAHostOrForADeviceBesideIt) {
  NamedPreset preset;
  EXPECT_TRUE(preset.empty());
  EXPECT_FALSE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &experts::usual_preset());
  preset = "auto";
  EXPECT_FALSE(preset.empty());
  EXPECT_FALSE(preset.is_chosen());
  preset = "zipmoe";
  EXPECT_TRUE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &experts::find_preset("zipmoe"));
  EXPECT_EQ(preset.device(), nullptr);
  preset = "dali";
  EXPECT_TRUE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &experts::usual_preset());
  EXPECT_EQ(preset.device(), &experts::find_device_preset("dali"));
  EXPECT_EQ(preset.name(), "dali");
  preset = "d-moe-lightning";  // cannot run, as choose_policies() says
  EXPECT_EQ(preset.name(), "d-moe-lightning");
  preset.clear();
  EXPECT_TRUE(preset.empty());
  EXPECT_EQ(NamedPreset(experts::find_preset("z-C")).name(), "z-C");
}

}  // namespace
}  // namespace sluice::engine
