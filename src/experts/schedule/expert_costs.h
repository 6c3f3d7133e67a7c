// The times that a layer is planned with: schedulers order reads by them, placements divide experts by them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// Time to compute one expert on one unit, by its number of tokens: a line, or measured points.
struct ComputeTime {
  double fixed = 0, per_token = 0;  // the line fixed + tokens · per_token, where nothing was measured
  std::vector<std::pair<std::uint32_t, double>> measured = {};  // by tokens, ascending

  // Between measured points, and beyond them, straight lines; never below 0.
  double of(std::uint32_t tokens) const;
};

// What a device costs, where there is one (SPEC §2.6, §3.2, §3.6; HybridTimeline).
struct DeviceCosts {
  ComputeTime run = {};      // computing an expert there, once it is there
  double transfer = 0;       // bringing any one expert there; 0: it takes no time on the clock
  ComputeTime shared = {};   // the shared experts of a layer, by the tokens of the step
  ComputeTime gate = {};     // attention, norm and gate of the next layer, by the tokens of the step
  double sync = 0;           // a copy of logits or activations down to the host
  double policy = 0;         // the host decides a layer
  double launch = 0;         // one launch on the device
  double predict = 0;        // predicting the next layer, where a policy asks for it …
  double stream_switch = 0;  // … and each change to the stream that predicts, and back
  double row = 0;            // the host's output for one token of one expert, up to the device
  bool full_duplex = true;   // the link carries both ways at once
  // The device reads an expert that it computes and does not keep where the host has it: `transfer` is
  // then of what stays there, and of what is copied ahead.
  bool in_place = false;
  // Where experts are in slices, the shares of `transfer` that bring one of them. They need not add up to 1.
  double msb = 0, lsb = 0;

  // `slices`: those that are brought.
  double transfer_of(Parts slices) const {
    return transfer * ((slices.has(Part::kMsb) ? msb : 0) + (slices.has(Part::kLsb) ? lsb : 0));
  }
};

// All in one unit of time (SPEC §1.3).
struct ExpertCosts {
  ScheduleCosts fetch;
  ComputeTime run;          // on the host (p of SPEC §1.3)
  DeviceCosts device = {};  // unused without a device
};

}  // namespace sluice::experts
