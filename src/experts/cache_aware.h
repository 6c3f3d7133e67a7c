// Which experts a token gets if those in memory are preferred: the rules cache-prior and cumsum. SPEC §4.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// `ranking`: the experts that may be selected, best first (logit descending, id ascending). `cached`: by id,
// whether an expert is in memory. The `top_j` best are treated as if they were. Replace `out` by the first
// `k`, in order of selection. REQUIRES: k <= ranking.size().

// By z + boost, the boost for those in memory; ties by z, then id. z: by id.
void select_cache_prior(std::span<const std::uint32_t> ranking, std::span<const double> z,
                        std::span<const std::uint8_t> cached, double boost, std::uint32_t top_j,
                        std::uint32_t k, std::vector<std::uint32_t>& out);

// Of the shortest prefix of the ranking, of k at least, whose probability reaches p (none does: of all) those
// in memory first, then its others, then the rest. probability: by id.
void select_cumsum(std::span<const std::uint32_t> ranking, std::span<const double> probability,
                   std::span<const std::uint8_t> cached, double p, std::uint32_t top_j, std::uint32_t k,
                   std::vector<std::uint32_t>& out);

}  // namespace sluice::experts
