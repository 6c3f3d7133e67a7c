// The presets for a host alone, a row each.
#pragma once

#include <string_view>

#include "experts/presets.h"

namespace sluice::experts::rows {

inline constexpr std::string_view kZipMoeBaselines = "ZipMoE (arXiv 2601.21198) 6; SPEC 1.10";

// ZipMoE and its baselines: each baseline differs from `zipmoe` in what it is there to show.
constexpr Preset zip_preset(std::string_view name, Named<CachePolicy> cache,
                            PoolSharing sharing = PoolSharing::kNone,
                            std::string_view source = kZipMoeBaselines) {
  return {.name = name,
          .router = "exact",
          .cache = cache,
          .prefetch = "none",
          .scheduler = "zip-affinity",
          .placement = "cpu",
          .sharing = sharing,
          .source = source};
}

inline constexpr Preset kPresets[] = {
    {.name = "auto",
     .router = "exact",
     .cache = "reuse",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = "whole experts, of which the one that is least likely to be used soon leaves",
     .usual = true},
    zip_preset("zipmoe", "zip-pools", PoolSharing::kPlanned),
    zip_preset("zipmoe-plus", "zip-reuse", PoolSharing::kPlanned,
               "ours: zipmoe with the ranks of the cache `reuse`"),
    zip_preset("z-C+P", "zip-pools", PoolSharing::kPlanned),
    zip_preset("z-C", "zip-pools", PoolSharing::kEqual),
    zip_preset("z-basic-fifo", "fifo"),
    zip_preset("z-basic-marking", "marking"),
    zip_preset("z-basic-lru", "lru"),
    {.name = "z-accelerate",
     .router = "exact",
     .cache = "static",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .synchronous = true,
     .whole_experts = true},
    {.name = "z-moe-infinity",
     .router = "exact",
     .cache = "eam",
     .prefetch = "eam",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .whole_experts = true},
    {.name = "z-deepspeed",
     .router = "exact",
     .cache = "none",
     .prefetch = "all-next",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .whole_layers = true,
     .whole_experts = true},
    {.name = "slicemoe",
     .router = "cache-prior",
     .cache = "slice-lru",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = "SliceMoE; SPEC 4, 5.2",
     .precision = PrecisionMode::kDbsc,
     .constraint = ConstraintMode::kHard},
};

}  // namespace sluice::experts::rows
