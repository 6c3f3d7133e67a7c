// Which experts a token gets when resident experts are preferred: the rules cache-prior and cumsum. SPEC
// §4.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// `ranking`: the experts that may be selected, best first (logit descending, id ascending). `cached`: by id,
// whether an expert is in memory. The `top_j` best experts are treated as resident. Both functions replace
// `out` by the first `k` experts, in order of selection. REQUIRES: k <= ranking.size().

// Orders experts by z + boost, where only resident experts get the boost; ties by z, then id. z: by id.
void select_cache_prior(std::span<const std::uint32_t> ranking, std::span<const double> z,
                        std::span<const std::uint8_t> cached, double boost, std::uint32_t top_j,
                        std::uint32_t k, std::vector<std::uint32_t>& out);

// Takes the shortest prefix of the ranking, of at least k experts, whose probability reaches p, or all
// experts if none does. Picks the resident experts of the prefix first, then its other experts, then the
// rest. probability: by id.
void select_cumsum(std::span<const std::uint32_t> ranking, std::span<const double> probability,
                   std::span<const std::uint8_t> cached, double p, std::uint32_t top_j, std::uint32_t k,
                   std::vector<std::uint32_t>& out);

}  // namespace sluice::experts
