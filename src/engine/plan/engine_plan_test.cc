#include "engine/plan/engine_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/routing/slice_names.h"

namespace sluice::engine {
namespace {

using experts::ConstraintMode;
using experts::Part;
using experts::PrecisionMode;

const ModelFacts kWhole{.path = "whole", .has_experts = true, .experts = 8, .top_k = 2};
const ModelFacts kSplit{.path = "split",
                        .family = experts::Family::kSplit,
                        .split = true,
                        .has_experts = true,
                        .experts = 8,
                        .top_k = 2};
const ModelFacts kSliced{.path = "sliced",
                         .slices = codec::SliceBits{8, 4},
                         .family = experts::Family::kSliced,
                         .has_experts = true,
                         .experts = 8,
                         .top_k = 2};
const ModelFacts kBlocks{.path = "blocks", .blocks = true, .has_experts = true, .experts = 8, .top_k = 2};

EngineOptions with(const std::function<void(EngineOptions&)>& change) {
  EngineOptions options;
  change(options);
  return options;
}

TEST(EnginePlan, FillsBlankOptionsByHowTheModelIsStored) {
  const EnginePlan whole = resolve({}, kWhole);
  EXPECT_EQ(whole.policies.preset->name, "auto");
  EXPECT_EQ(whole.policies.router->name, "exact");
  EXPECT_EQ(whole.policies.cache->name, "reuse");
  EXPECT_EQ(whole.policies.scheduler->name, "serial");
  EXPECT_EQ(whole.policies.prefetch->name, "stream");
  EXPECT_EQ(whole.policies.placement->name, "cpu");
  EXPECT_EQ(whole.policies.kept, Part::kFull);
  EXPECT_EQ(whole.policies.precision.mode, PrecisionMode::kFull);
  EXPECT_EQ(whole.cache_dtype, DType::kBF16);
  EXPECT_EQ(whole.activations, std::nullopt);
  EXPECT_EQ(whole.encoder_positions, 0u);
  const EnginePlan split = resolve({}, kSplit);
  EXPECT_EQ(split.policies.preset->name, "zipmoe-plus");
  EXPECT_EQ(split.policies.cache->name, "zip-reuse");
  EXPECT_EQ(split.policies.scheduler->name, "zip-affinity");
  EXPECT_EQ(split.policies.prefetch->name, "stream");  // the user chose no preset

  const EnginePlan packed = resolve(with([](EngineOptions& o) { o.keep = Keep::kPacked; }), kSplit);
  EXPECT_EQ(packed.policies.preset->name, "auto");
  EXPECT_EQ(packed.policies.cache->name, "reuse");
  EXPECT_EQ(packed.policies.kept, Part::kSm | Part::kExp);
}

// What never leaves need not be foretold; and whoever names a cache or a preset gets it at every budget.
TEST(EnginePlan, LearnsWhatToKeepOnlyWhereSomethingLeaves) {
  const auto where_all_fits = [](const std::function<void(EngineOptions&)>& change, const ModelFacts& facts) {
    const EnginePlan plan = resolve(with(change), facts);
    return plan.where_all_fits ? std::string(plan.where_all_fits->cache->name) : "the same";
  };
  EXPECT_EQ(where_all_fits([](EngineOptions&) {}, kWhole), "lru");
  EXPECT_EQ(where_all_fits([](EngineOptions&) {}, kSplit), "zip-pools");
  EXPECT_EQ(where_all_fits([](EngineOptions& o) { o.cache = "reuse"; }, kWhole), "the same");
  EXPECT_EQ(where_all_fits([](EngineOptions& o) { o.preset = "zipmoe-plus"; }, kSplit), "the same");
  EXPECT_EQ(where_all_fits([](EngineOptions& o) { o.precision = PrecisionMode::kHigh; }, kSliced),
            "the same");
}

// Beside a device whole experts are in a cache that takes back what leaves it.
TEST(EnginePlan, TheHostsCacheBesideADeviceAdopts) {
  const EnginePlan beside = resolve(with([](EngineOptions& o) { o.device = "emulated"; }), kWhole);
  EXPECT_EQ(beside.policies.cache->name, "lru");
  EXPECT_TRUE(beside.policies.cache->adopts);
  EXPECT_FALSE(beside.where_all_fits);
}

TEST(EnginePlan, ReadsAheadOnlyWhereTheUserChoseNothing) {
  const auto prefetch = [](const EngineOptions& options, const ModelFacts& facts) {
    return resolve(options, facts).policies.prefetch->name;
  };
  EXPECT_EQ(prefetch(with([](EngineOptions& o) { o.preset = "zipmoe"; }), kSplit), "none");
  EXPECT_EQ(prefetch(with([](EngineOptions& o) { o.recording = 1; }), kSplit), "none");
  EXPECT_EQ(prefetch(with([](EngineOptions& o) { o.recording = 1, o.prefetch = "eam"; }), kSplit), "eam");
  EXPECT_EQ(prefetch(with([](EngineOptions& o) { o.precision = PrecisionMode::kHigh; }), kSliced), "stream");
  EXPECT_EQ(prefetch(with([](EngineOptions& o) { o.preset = "slicemoe"; }), kSliced), "none");
  EXPECT_EQ(
      prefetch(with([](EngineOptions& o) { o.precision = PrecisionMode::kHigh, o.router = "cache-prior"; }),
               kSliced),
      "none");
}

TEST(EnginePlan, GivesSlicesTheirCacheAndFormOfActivations) {
  for (const PrecisionMode precision : {PrecisionMode::kDbsc, PrecisionMode::kHigh, PrecisionMode::kLow}) {
    const EnginePlan plan = resolve(with([&](EngineOptions& o) { o.precision = precision; }), kSliced);
    SCOPED_TRACE(std::string(experts::precision_name(precision)));
    EXPECT_EQ(plan.policies.cache, &experts::usual_slice_cache(precision));
    EXPECT_EQ(plan.policies.limits.low, experts::least_parts(precision));
    EXPECT_EQ(plan.policies.limits.high, Part::kMsb | Part::kLsb);
    EXPECT_EQ(plan.policies.slices.warmup.rho, experts::usual_rho(precision));
    EXPECT_EQ(plan.activations, kernels::ActivationForm::kInt8);
  }
  const EnginePlan dbsc =
      resolve(with([](EngineOptions& o) { o.precision = PrecisionMode::kDbsc; }), kSliced);
  EXPECT_EQ(dbsc.policies.cache->name, "slice-lru");
  EXPECT_EQ(dbsc.policies.kept, Part::kMsb | Part::kLsb);
  // A cache of whole experts knows one size.
  const EnginePlan low =
      resolve(with([](EngineOptions& o) { o.precision = PrecisionMode::kLow, o.cache = "lru"; }), kSliced);
  EXPECT_EQ(low.policies.kept, Part::kMsb);
  const EnginePlan exact = resolve(
      with([](EngineOptions& o) { o.precision = PrecisionMode::kHigh, o.math = Math::kF32; }), kSliced);
  EXPECT_EQ(exact.activations, kernels::ActivationForm::kF32);
  EXPECT_EQ(exact.cache_dtype, DType::kF32);
  EXPECT_EQ(resolve({}, kBlocks).activations, kernels::ActivationForm::kF32);
  const EnginePlan coded =
      resolve(with([](EngineOptions& o) { o.activations = kernels::ActivationForm::kInt8; }), kBlocks);
  EXPECT_EQ(coded.activations, kernels::ActivationForm::kInt8);
}

TEST(EnginePlan, UnderAContractHasPoliciesThatLoseNothingBesideThoseThatMay) {
  const EnginePlan plan = resolve(with([](EngineOptions& o) {
                                    o.precision = PrecisionMode::kDbsc;
                                    o.router = "cache-prior";
                                    o.constraint = ConstraintMode::kHard;
                                    o.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
                                    o.contract.emplace().planned_low = 0.5;
                                  }),
                                  kSliced);
  ASSERT_TRUE(plan.where_all_fits);
  EXPECT_EQ(plan.policies.router->name, "cache-prior");
  EXPECT_EQ(plan.policies.limits.mode, ConstraintMode::kHard);
  EXPECT_EQ(plan.policies.limits.lambda, 0);  // a guard is asked
  EXPECT_EQ(plan.policies.contract->planned_low, 0.5);
  const PolicyPlan& exact = *plan.where_all_fits;
  EXPECT_EQ(exact.precision.mode, PrecisionMode::kHigh);
  EXPECT_EQ(exact.router->name, "exact");
  EXPECT_EQ(exact.limits.mode, ConstraintMode::kNone);
  EXPECT_EQ(exact.limits.low, Part::kMsb | Part::kLsb);
  EXPECT_EQ(exact.contract->planned_low, 0);
  EXPECT_EQ(exact.slices.warmup.rho, experts::usual_rho(PrecisionMode::kHigh));
  EXPECT_EQ(exact.cache, plan.policies.cache);
  EXPECT_EQ(exact.prefetch, plan.policies.prefetch);
  EXPECT_FALSE(exact.depends_on_memory());
  EXPECT_TRUE(plan.policies.depends_on_memory());
}

TEST(EnginePlan, UnderAContractExactWeightsHaveSmoeBesideExact) {
  const EnginePlan plan = resolve(with([](EngineOptions& o) {
                                    o.router = "smoe";
                                    o.contract.emplace();
                                  }),
                                  kSplit);
  EXPECT_EQ(plan.policies.router->name, "smoe");
  ASSERT_TRUE(plan.where_all_fits);
  EXPECT_EQ(plan.where_all_fits->router->name, "exact");
  EXPECT_EQ(plan.where_all_fits->precision.mode, PrecisionMode::kFull);
}

// The setting that the refusal names; its text if it names none.
std::string refused(const std::function<void(EngineOptions&)>& change, const ModelFacts& facts) {
  try {
    resolve(with(change), facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return with_names(error.where());
  }
  return "accepted";
}

TEST(EnginePlan, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(refused([](EngineOptions& o) { o.preset = std::string("x"); }, kWhole), "--preset");
  EXPECT_EQ(refused([](EngineOptions& o) { o.router = std::string("x"); }, kWhole), "--router");
  EXPECT_EQ(refused([](EngineOptions& o) { o.cache = std::string("x"); }, kWhole), "--cache");
  EXPECT_EQ(refused([](EngineOptions& o) { o.scheduler = std::string("x"); }, kWhole), "--scheduler");
  EXPECT_EQ(refused([](EngineOptions& o) { o.prefetch = std::string("x"); }, kWhole), "--prefetch");
  EXPECT_EQ(refused([](EngineOptions& o) { o.placement = std::string("x"); }, kWhole), "--placement");
  EXPECT_EQ(refused([](EngineOptions& o) { o.isa = "x"; }, kWhole), "--isa");
  EXPECT_EQ(refused([](EngineOptions& o) { o.chunk = 0; }, kWhole), "--chunk");
  EXPECT_EQ(refused([](EngineOptions& o) { o.keep = Keep::kPacked; }, kWhole), "--keep");
  EXPECT_EQ(refused([](EngineOptions& o) { o.preset = "slicemoe"; }, kWhole), "--preset");
  EXPECT_EQ(
      refused([](EngineOptions& o) { o.preset = "zipmoe", o.precision = PrecisionMode::kHigh; }, kSliced),
      "--preset");
  EXPECT_EQ(refused([](EngineOptions& o) { o.precision = PrecisionMode::kHigh; }, kWhole), "--precision");
  EXPECT_EQ(refused([](EngineOptions&) {}, kSliced), "sliced");
  EXPECT_EQ(refused([](EngineOptions& o) { o.constraint = ConstraintMode::kHard; }, kWhole), "--constraint");
  EXPECT_EQ(refused([](EngineOptions& o) { o.activations = kernels::ActivationForm::kF32; }, kWhole),
            "--activations");
  EXPECT_EQ(
      refused([](EngineOptions& o) { o.activations = kernels::ActivationForm::kInt8, o.math = Math::kF32; },
              kBlocks),
      "--activations");
  EXPECT_EQ(refused([](EngineOptions& o) { o.activations = kernels::ActivationForm::kInt8; }, kBlocks),
            "accepted");
  EXPECT_EQ(refused([](EngineOptions& o) { o.router = "cache-prior", o.cache_aware.top_j = 9; }, kWhole),
            "--top-j");
  EXPECT_EQ(refused([](EngineOptions&) {}, kWhole), "accepted");
}

TEST(EnginePlan, EveryPresetGoesWithSomeModel) {
  for (const experts::Preset& preset : experts::presets()) {
    const ModelFacts& facts = preset.sliced() ? kSliced : kSplit;
    const EnginePlan plan =
        resolve(with([&](EngineOptions& o) { o.preset = std::string(preset.name); }), facts);
    if (preset.name != "auto") {
      EXPECT_EQ(plan.policies.preset, &preset);
    }
    EXPECT_EQ(plan.policies.limits.mode, preset.constraint);
    EXPECT_EQ(plan.policies.decodes_otherwise(), preset.name == "slicemoe") << preset.name;
  }
}

TEST(EnginePlan, ModelsWithEncodersHaveRoomForAnInput) {
  ModelFacts facts = kWhole;
  facts.has_encoder = true;
  EXPECT_EQ(resolve({}, facts).encoder_positions, 1u);
  EXPECT_EQ(resolve(with([](EngineOptions& o) { o.encoder_positions = 7; }), facts).encoder_positions, 7u);
  EXPECT_EQ(resolve(with([](EngineOptions& o) { o.encoder_positions = 7; }), kWhole).encoder_positions, 0u);
}

// Slots hold experts packed only where the host keeps them so, which it then does by itself.
TEST(EnginePlan, SlotsOfADeviceArePackedWhereTheHostsExpertsAre) {
  ModelFacts packable = kSplit;
  packable.packable = true;
  const auto planned = [&](const std::function<void(EngineOptions&)>& change, const ModelFacts& facts) {
    return resolve(with([&](EngineOptions& o) {
                     o.device = "emulated";
                     change(o);
                   }),
                   facts);
  };
  const auto packed = [](const EnginePlan& plan) { return plan.device.value().slot_form.packed; };
  const EnginePlan asked = planned([](EngineOptions& o) { o.device_keep = DeviceKeep::kPacked; }, packable);
  EXPECT_TRUE(packed(asked));
  EXPECT_TRUE(asked.device->copies_packed);
  EXPECT_EQ(asked.keep, Keep::kPacked);
  EXPECT_EQ(asked.policies.cache->name, "lru");
  EXPECT_EQ(asked.policies.kept, Part::kSm | Part::kExp);

  const EnginePlan blank = planned([](EngineOptions&) {}, packable);
  EXPECT_FALSE(packed(blank));
  EXPECT_FALSE(blank.device->copies_packed);
  EXPECT_EQ(blank.policies.cache->name, "zip-reuse");
  EXPECT_FALSE(blank.device->slot_form.why.empty());
  EXPECT_TRUE(packed(planned([](EngineOptions& o) { o.keep = Keep::kPacked; }, packable)));
  EXPECT_FALSE(packed(planned([](EngineOptions& o) { o.keep = Keep::kPacked; }, kSplit)));
  const auto plus = [](EngineOptions& o) { o.preset = "dali-plus", o.prefetch = "none"; };
  EXPECT_TRUE(packed(planned(plus, packable)));
  EXPECT_FALSE(packed(planned(plus, kWhole)));
  EXPECT_FALSE(packed(planned([&](EngineOptions& o) { plus(o), o.keep = Keep::kFull; }, packable)));
  const EnginePlan full =
      planned([](EngineOptions& o) { o.device_keep = DeviceKeep::kFull, o.keep = Keep::kPacked; }, packable);
  EXPECT_FALSE(packed(full));
  EXPECT_TRUE(full.device->copies_packed);  // as the host has them
}

// Only a preset named after a paper must read ahead as the paper does.
TEST(EnginePlan, OurPresetDoesWithoutAResidual) {
  const auto prefetch = [](const std::string& preset) {
    EngineOptions options;
    options.device = "emulated";
    options.preset = preset;
    return resolve(options, kWhole).policies.prefetch->name;
  };
  EXPECT_EQ(prefetch("dali-plus"), "stream");
  EXPECT_THROW(prefetch("dali"), Error);
  EXPECT_THROW(prefetch("d-greedy+pre"), Error);
}

TEST(EnginePlan, RefusesPackedSlotsThatCannotBe) {
  ModelFacts packable = kSplit;
  packable.packable = true;
  const auto refused = [](const ModelFacts& facts, const std::function<void(EngineOptions&)>& change) {
    EngineOptions options;
    options.device = "emulated";
    options.device_keep = DeviceKeep::kPacked;
    change(options);
    try {
      resolve(options, facts);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto nothing = [](EngineOptions&) {};
  EXPECT_EQ(refused(packable, nothing), "");
  const std::string whole = refused(kWhole, nothing), decoded = refused(kSplit, nothing),
                    words = refused(packable, [](EngineOptions&o) { o.keep = Keep::kFull; }),
                    pools = refused(packable, [](EngineOptions&o) { o.cache = "zip-pools"; }),
                    alone = refused(packable, [](EngineOptions&o) { o.device = "none"; });
  EXPECT_NE(whole.find("sluice pack"), std::string::npos) << whole;
  EXPECT_NE(decoded.find("decoded first"), std::string::npos) << decoded;
  EXPECT_NE(words.find("--keep full"), std::string::npos) << words;
  EXPECT_NE(pools.find("zip-pools"), std::string::npos) << pools;
  EXPECT_NE(alone.find("there is no device"), std::string::npos) << alone;
}

TEST(EnginePlan, ThePoolOfAllSequencesHasRoomForOne) {
  const auto options = [](std::optional<std::size_t> tokens) {
    return with([&](EngineOptions& o) {
      o.positions = 500;
      o.kv_tokens = tokens;
      o.serve = 7;
    });
  };
  EXPECT_EQ(resolve(options({}), kWhole).kv_tokens, std::nullopt);
  EXPECT_EQ(resolve(options(500), kWhole).kv_tokens, 500u);
  EXPECT_EQ(resolve(options(500), kWhole).serve, 7u);
  try {
    resolve(options(499), kWhole);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("--kv-tokens: "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("at least 500"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sluice::engine
