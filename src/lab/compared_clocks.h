// The two clocks of contenders with a device: what the modelled one says of a decode step, beside what it
// took. A device that keeps its own times and a model of it that is right agree within a few per cent.
#pragma once

#include <cstddef>
#include <string>

#include "base/json/json.h"

namespace sluice::lab {

struct Compared;
struct Comparison;

// Whether a run of it had a device, and decoded something.
bool has_clocks(const Compared& compared);
// {moe_s, predicted_tpot_s, predicted_moe_s, predicted_over_measured, overrun_share} over all runs of a
// contender, each {median, low, high}.
Json clocks_json(const Compared& compared);
// Whether the predicted times order these contenders as the measured ones do, by the medians.
bool same_ranking(const Comparison& comparison);
// For a terminal of this many columns. REQUIRES: a device.
std::string clocks_table(const Comparison& comparison, std::size_t columns);

}  // namespace sluice::lab
