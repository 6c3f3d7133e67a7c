// The rules of zip-pools (zip_pools.h). ZipMoE (arXiv 2601.21198) §5.4; SPEC §1.7.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::experts {

// What happens to experts for which their pool has no room. No way reads or compresses anything.
enum class Demotion : std::uint8_t {
  kNone,  // they leave; SPEC §1.7 as printed
  kRoom,  // victims of C stay as S or E where there is room (SPEC §1.7 (iv), demote = true)
  // They go down the pools F, C, S, E to the first pool that their parts allow and that has room or a colder
  // expert. That colder expert goes down in the same way, and leaves memory below the last pool. Example:
  // with C full, an expert that rises into C pushes the coldest of C into S, if S has room or a still colder
  // expert. Exception: an expert in F could only move to S. It keeps its slot while C takes the hotter expert
  // instead and the hotter one has fewer than kUsesWorthARead more uses (zip_pools.cc).
  kRank,
};
std::string_view demotion_name(Demotion demotion);  // "none" "room" "rank"
std::optional<Demotion> find_demotion(std::string_view name);

// By what the experts of a layer are ranked.
enum class PoolRanks : std::uint8_t {
  kUses,  // by how often they were used, as the paper has it
  // By how likely they are used soon (workload/reuse_forecast.h). Ours; docs/cache-tournament.md.
  kForecast,
};

struct PoolRules {
  std::uint32_t delta = 2;  // tolerance margin, in experts
  Demotion demotion = Demotion::kRank;
  double half_life = 0;  // steps in which counts halve; 0: counts never decay
  PoolRanks ranks = PoolRanks::kUses;
};

}  // namespace sluice::experts
