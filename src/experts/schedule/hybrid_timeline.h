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
// left of it when its layer has ended goes on in the next one. The link is full duplex: returns, experts that
// leave the device for the host's memory, go up beside all that, one after the other.
//
// Times are doubles in any one unit. Pure: no clock but its own. It never tells a device how long to take.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::experts {

// What a layer costs beside its experts.
struct HybridCosts {
  double sync = 0;       // a copy of logits or activations down to the host
  double policy = 0;     // the host decides
  double launch = 0;     // of one launch on the device: shared and resident experts together, each loaded one
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
  std::span<const LinkTransfer> updates = {};  // of the cache; sent once the layer's outputs are combined
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

// A prefetch or update that the link has brought.
struct LinkArrival {
  ExpertId id;
  double time = 0;
  bool is_update = false;
};

// How long the link was busy, by what it carried.
struct LinkUse {
  double loads = 0, rows = 0, prefetches = 0, updates = 0;
  double returns = 0;  // upwards, beside the others
};

// One per run. For each layer decide(), perhaps receive(), then run(). Allocates nothing once it has seen
// the largest layer and the longest queue. Thread-compatible.
class HybridTimeline {
 public:
  // The host decides the layer whose gate has just ended. Returns when it has decided; the link is followed
  // up to then.
  double decide(const HybridCosts& costs);
  // What is left of the expert's prefetch or update at that time; 0 if it has arrived or was never sent.
  double remaining(ExpertId id) const;
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
  std::span<const LinkArrival> arrivals() const { return arrivals_; }

  // The layer that was run last; valid until the next decide().
  const HybridTimes& times() const { return times_; }

  // Since the start.
  double now() const { return times_.end; }
  const LinkUse& link() const { return link_; }
  std::uint64_t withdrawn() const { return withdrawn_; }  // prefetches

 private:
  // What gives way to loads, and to what stands before it here.
  enum class Class : std::uint8_t { kRows, kPrefetch, kUpdate };
  struct Background {
    ExpertId id;  // unused for rows
    Class kind = Class::kRows;
    double released = 0, time = 0, left = 0;
  };
  struct Return {
    ExpertId id;
    double released = 0, left = 0;
  };
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

  void withdraw_unstarted();
  // Takes what is on the link out of the background: transfers_.
  void take_loads(std::span<const LinkLoad> loads);
  void load_experts(const HybridWork& work);
  void send(const LinkTransfer& transfer, double released, Class kind);
  std::vector<Background>::const_iterator find(ExpertId id) const;
  // Lets the link carry background transfers from link_time_ to `until`; if `rows_only`, no further than to
  // the end of the host's rows.
  void carry(double until, bool rows_only = false);
  // The background transfer that the link carries at that time, or kNothing; lowers `until` to the first
  // release that changes the answer.
  std::size_t carried_at(double time, double& until) const;
  void carry_up(double until);

  HybridCosts costs_;
  HybridTimes times_;
  bool decided_ = false;  // and not yet run
  LinkUse link_;
  double link_time_ = 0;  // the link has been followed up to here
  std::uint64_t withdrawn_ = 0;
  std::vector<Background> background_;  // in the order in which they were sent
  double up_time_ = 0;                  // as link_time_, upwards
  std::vector<Return> returns_;         // in the order of the link
  std::vector<LinkArrival> arrivals_;
  std::vector<double> transfers_, load_arrivals_, load_ends_;  // of the layer's loads
};

}  // namespace sluice::experts
