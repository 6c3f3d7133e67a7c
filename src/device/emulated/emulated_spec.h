// What an emulated device is like: rates, latency, threads. docs/devices.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace sluice::device {

// Undilated, as written. A rate that is not there is `inf`: not paced, so that no time measured with it is
// valid.
struct EmulatedSpec {
  std::optional<double> link_bytes_per_s = 2e9;      // each way
  double latency_s = 20e-6;                          // for each copy
  std::optional<double> compute_bytes_per_s = 60e9;  // bytes of weights, see WeightUse
  std::optional<double> host_bytes_per_s;            // bytes of weights, for each token (HostPace)
  unsigned threads = 1;                              // the device's
  double dilation = 1;                               // everything is slower by this factor
  bool full_duplex = true;                           // both directions of the link at once
};

// "emulated", or
// "emulated:link=2GB/s,latency=20us,compute=60GB/s,host=3GB/s,threads=1,dilate=1,duplex=full", in any
// order, each part optional: the values above are the defaults, but that a host without a rate is not
// paced. Rates are bytes a second with a unit of parse_size() before "/s", of at least 1 kB,
// or "inf"; latencies have the units ns, us, µs, ms or s, and are 10 s at most. Error(kUsage) naming `where`
// for anything else.
EmulatedSpec parse_emulated_spec(std::string_view text, std::string_view where);

// "25GB/s", as a rate of the specification is written: bytes a second. Error(kUsage) naming `where`, also for
// "inf".
double parse_link_rate(std::string_view text, std::string_view where);

// The spec written out, with all its parts, as parse_emulated_spec() reads it.
std::string to_text(const EmulatedSpec& spec);

}  // namespace sluice::device
