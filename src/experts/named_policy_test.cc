#include "experts/named_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/setting.h"
#include "experts/device_presets.h"
#include "experts/named_preset.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

TEST(Named, IsTheRowOfItsNameOrNone) {
  Named<CachePolicy> cache;
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(&cache.or_usual("lru"), &find_cache("lru"));
  cache = "fifo";
  EXPECT_EQ(cache.row(), &find_cache("fifo"));
  EXPECT_EQ(&cache.or_usual("lru"), cache.row());
  EXPECT_TRUE(cache == "fifo");
  EXPECT_FALSE(cache == "lru");
  cache = std::string();
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(Named<PrefetchPolicy>("lookahead").row(), &find_prefetch("stream"));
  cache = find_cache("none");
  EXPECT_EQ(cache->name, "none");
  cache.clear();
  EXPECT_TRUE(cache.empty());
}

// A literal is looked up when it is compiled. Where two types stand in one place, only the first has such a
// name.
template <class Policy>
concept HasLru = requires {
  typename std::integral_constant<bool, (Named<Policy>("lru"), true)>;
};
static_assert(HasLru<CachePolicy> && !HasLru<RouterPolicy> && !HasLru<SchedulerPolicy>);

TEST(Named, FindsAnyNameAsWrittenAndAsTyped) {
  const std::string typed = "z-C+P";
  EXPECT_EQ(&NamedPreset("z-C+P").host(), &NamedPreset(typed).host());
  EXPECT_EQ(NamedPreset("d-greedy+pre").device(), &find_device_preset("d-greedy+pre"));
  EXPECT_EQ(Named<PlacementPolicy>("host"), Named<PlacementPolicy>(std::string("cpu")));
  EXPECT_TRUE(Named<CachePolicy>("").empty() && NamedPreset("").empty());
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
  const std::string x = "x";
  EXPECT_EQ(refused([&] { return Named<RouterPolicy>(x); }), "--router");
  EXPECT_EQ(refused([&] { return Named<CachePolicy>(x); }), "--cache");
  EXPECT_EQ(refused([&] { return Named<SchedulerPolicy>(x); }), "--scheduler");
  EXPECT_EQ(refused([&] { return Named<PrefetchPolicy>(x); }), "--prefetch");
  EXPECT_EQ(refused([&] { return Named<PlacementPolicy>(x); }), "--placement");
  EXPECT_EQ(refused([&] { return NamedPreset(x); }), "--preset");
}

TEST(NamedPreset, IsForAHostOrForADeviceBesideIt) {
  NamedPreset preset;
  EXPECT_TRUE(preset.empty());
  EXPECT_FALSE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &usual_preset());
  preset = "auto";
  EXPECT_FALSE(preset.empty());
  EXPECT_FALSE(preset.is_chosen());
  preset = "zipmoe";
  EXPECT_TRUE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &find_preset("zipmoe"));
  EXPECT_EQ(preset.device(), nullptr);
  preset = "dali";
  EXPECT_TRUE(preset.is_chosen());
  EXPECT_EQ(&preset.host(), &usual_preset());
  EXPECT_EQ(preset.device(), &find_device_preset("dali"));
  EXPECT_EQ(preset.name(), "dali");
  preset.clear();
  EXPECT_TRUE(preset.empty());
  EXPECT_EQ(NamedPreset(find_preset("z-C")).name(), "z-C");
}

}  // namespace
}  // namespace sluice::experts
