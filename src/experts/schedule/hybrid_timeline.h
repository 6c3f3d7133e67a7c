// When things happen while host and device compute a layer side by side: a modelled clock for policies,
// replays and planners. SPEC §2.6, §3.6 and §10 (G3, G8).
//
// A layer runs from its gate to the next one's:
//
//   device  gate             | shared and resident experts | prediction | loads as they arrive | next gate
//   host         decision    | its experts
//   link                     | loads, one after the other | rows of the host | prefetches | updates
//   link, up                 | returns
//
// The device works in order: a loaded expert waits for its transfer, and the experts behind it wait, too. The
// link carries loads first, then the host's rows, then prefetches, then updates; copies are cut into small
// chunks, so a transfer gives way at once to one of a higher class and later goes on where it was. What is
// left of it when its layer has ended goes on in the next one. Returns are experts that leave the device for
// the host's memory: on a link that is full duplex they go up beside all that, one after the other; on one
// that is half duplex they share its one lane (link_lane.h), and are sent as updates are.
//
// Times are doubles in any one unit. Pure: no clock but its own. It never tells a device how long to take.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "experts/core/ids.h"
#include "experts/schedule/link_lane.h"

namespace sluice::experts {

// What a layer costs beside its experts.
struct HybridCosts {
  double sync = 0;       // a copy of logits or activations down to the host
  double policy = 0;     // the host decides
  double launch = 0;     // one launch on the device: shared and resident experts together, each loaded one
  double predict = 0;    // the device predicts the next layer, changes of streams included; 0: it does not
  double next_gate = 0;  // attention, norm and gate of the next layer
};

struct LinkTransfer {
  ExpertId id;
  double time = 0;  // on the link, alone
};
struct LinkLoad {
  ExpertId id;
  double transfer =
      0;  // as LinkTransfer::time; an expert that is on the link already needs what is left of it
  double compute = 0;  // on the device
};

constexpr std::uint32_t kAnyBuffers = std::numeric_limits<std::uint32_t>::max();

// One layer, decided. Non-owning.
struct HybridWork {
  double shared = 0;                      // shared experts, on the device
  std::span<const double> host = {};      // time of each expert of the host
  double rows = 0;                        // the rows of these experts, up to the device
  std::span<const double> resident = {};  // time of each expert that is on the device
  std::span<const LinkLoad> loads = {};   // in the order of the link
  // Loads that may be on the device before they are computed, at least 1: with one buffer, link and device
  // take turns.
  std::uint32_t buffers = kAnyBuffers;
  // For the next layer, most useful first; sent once it is predicted and the host knows.
  std::span<const LinkTransfer> prefetches = {};
  std::span<const LinkTransfer> updates = {};  // the cache's; sent once the layer's outputs are combined
  std::span<const LinkTransfer> returns = {};  // sent up as soon as the layer is decided
};

// Absolute times of one layer.
struct HybridTimes {
  double gate = 0;       // the device has the router's scores
  double decided = 0;    // the host has decided, and has what receive() waits for
  double resident = 0;   // the device ends the shared and resident experts
  double predicted = 0;  // … and the prediction
  double device = 0;     // … and the last loaded expert
  double host = 0;       // the host ends its last expert
  double rows = 0;       // its rows are on the device; `decided` without experts of the host
  double combined = 0;   // the outputs are summed: the later of device and rows
  double end = 0;        // the next layer's gate
};

// One per run. For each layer decide(), perhaps receive(), then run(). Allocates nothing once it has seen
// the largest layer and the longest queue. Thread-compatible.
class HybridTimeline {
 public:
  explicit HybridTimeline(bool full_duplex = true) : full_duplex_(full_duplex) {}

  // The host decides the layer whose gate has just ended. Returns when it has decided; the link is followed
  // up to then.
  double decide(const HybridCosts& costs);
  // What is left of the expert's prefetch or update at that time; 0 if it has arrived or was never sent.
  double remaining(ExpertId id) const;
  // All that was sent to the device has arrived.
  bool idle() const { return lanes_[0].idle(); }
  // The expert's prefetch or update is not wanted any more: what is left of it is not sent.
  void withdraw(ExpertId id);
  // What is left of the expert's return; 0 if it has arrived or was never sent. withdraw_return(): the host
  // does not want it any more.
  double returning(ExpertId id) const;
  void withdraw_return(ExpertId id);
  // Between decide() and run(): the decided layer needs the expert in the host's memory, and waits for its
  // return, which overtakes other returns. Says when it is there; then the layer is decided.
  double receive(ExpertId id);
  // Runs the decided layer. A load that is on the link already becomes a load of what is left of it. Other
  // prefetches that have not started are withdrawn: they were for this layer. REQUIRES: decide() before each
  // run(); prefetches and updates that are on the link no more, that differ, and that take time.
  const HybridTimes& run(const HybridWork& work);

  // When each load of the last layer arrived, and when the device had computed it. Valid until the next
  // run().
  std::span<const double> load_arrivals() const { return load_arrivals_; }
  std::span<const double> load_ends() const { return load_ends_; }
  // Since the last decide() began, in order. Valid until the next decide().
  std::span<const LinkArrival> arrivals() const { return lanes_[0].arrivals(); }

  // The layer that was run last; valid until the next decide().
  const HybridTimes& times() const { return times_; }

  // Since the start.
  double now() const { return times_.end; }
  LinkUse link() const;
  std::uint64_t withdrawn() const { return withdrawn_; }  // prefetches

 private:
  LinkLane& down() { return lanes_[0]; }
  LinkLane& up() { return lanes_[full_duplex_ ? 1 : 0]; }
  const LinkLane& up() const { return lanes_[full_duplex_ ? 1 : 0]; }
  // Follows both ways.
  void carry(double until);
  // Takes what is on the link out of the background: transfers_.
  void take_loads(std::span<const LinkLoad> loads);
  void load_experts(const HybridWork& work);
  void send(const LinkTransfer& transfer, double released, LinkLane::Class kind);

  const bool full_duplex_;
  HybridCosts costs_;
  HybridTimes times_;
  bool decided_ = false;  // and not yet run
  LinkLane lanes_[2];     // the second for returns alone, where the link is full duplex
  std::uint64_t withdrawn_ = 0;
  std::vector<double> transfers_, load_arrivals_, load_ends_;  // for the layer's loads
};

}  // namespace sluice::experts
