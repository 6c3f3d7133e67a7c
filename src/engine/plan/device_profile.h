// What a device beside the host costs for one model, measured on this machine: the part of a profile that
// placements and the modelled clock decide with. SPEC §3.2, §3.6 and §10 (G3, G8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/json/json.h"
#include "experts/schedule/expert_costs.h"

namespace sluice::engine {

// Seconds: the median of repeated runs, and half the distance from the first to the ninth decile.
struct Measured {
  double median = 0, spread = 0;
  bool operator==(const Measured&) const = default;
};
Measured measured(std::vector<double> samples);  // at least one sample

// By numbers of tokens, ascending.
using TimesOfTokens = std::vector<std::pair<std::uint32_t, Measured>>;

// A copy of b bytes takes latency_s + b / bytes_per_s.
struct LinkSpeed {
  double bytes_per_s = 0, latency_s = 0;
  bool operator==(const LinkSpeed&) const = default;
  double seconds(Bytes bytes) const { return latency_s + static_cast<double>(bytes) / bytes_per_s; }
};

// How experts cross the link, and what both units compute from.
inline constexpr std::string_view kWordsView = "words", kPackedView = "packed";
// The same of experts in slices: the MSB alone, which most of a run is computed from, or both.
inline constexpr std::string_view kMsbView = "msb", kSlicesView = "msb+lsb";

struct DeviceProfile {
  std::string device;     // its whole specification, as device::to_text() has it
  std::string view = {};  // one of these; empty: a profile that does not say
  Bytes expert = 0;       // that a copy of an expert moves, in that view
  Bytes lsb = 0;          // for slices: of the LSB, in that view or beside it
  Bytes row = 0;          // one token's hidden state
  TimesOfTokens host;     // computing one expert on the host, while the device copies and computes …
  // … and on the device, while the host computes; empty: it has no kernels for them. Times do not fall with
  // the tokens.
  TimesOfTokens run;
  LinkSpeed idle, busy;     // host to device, alone and beside the host's experts; decisions use `busy`
  bool full_duplex = true;  // the link carries both ways at once
  bool in_place = false;    // the device reads an expert that does not stay there where the host has it
  TimesOfTokens attention;  // what a step has beside routed experts and head, for each sparse layer
  Measured predict;         // scores of the next layer for one token
  Measured sync;            // a few bytes, down to the host

  bool operator==(const DeviceProfile&) const = default;
  bool computes_experts() const { return !run.empty(); }
  bool in_slices() const { return view == kMsbView || view == kSlicesView; }
  // Sets what placements and the modelled clock need: `run` of the host, and all of `device`.
  void put_costs(experts::ExpertCosts& costs) const;
};

Json to_json(const Measured& value);
Measured measured_of(const JsonObject& object);
// An array of {"tokens", "median", "spread"}, ascending by tokens.
Json to_json(const TimesOfTokens& times);
TimesOfTokens times_of_tokens(const JsonObject& object, const std::string& key);

// "full" "half": whether a link carries both ways at once, in an object where `duplex` may be missing.
std::string_view duplex_name(bool full);
bool full_duplex_of(const JsonObject& link);

Json to_json(const DeviceProfile& profile);
// Error(kInvalid) naming the field if one is missing, negative, not finite, or falls where it must not.
DeviceProfile device_profile_of(const JsonObject& object);
// Makes times that fall with more tokens, which is noise, as long as those of fewer.
void make_monotone(TimesOfTokens& times);

}  // namespace sluice::engine
