// The host's pins that a device still needs: of experts that are copied there, and of those that it reads
// where the host has them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "device/event.h"
#include "experts/core/ids.h"
#include "fetch/memory/expert_store.h"

namespace sluice::fetch {

// Thread-compatible.
class DevicePins {
 public:
  // Until that is done, which is never with an error.
  void hold(ExpertStore::Pin pin, const device::Event& until) { held_.push_back({std::move(pin), until}); }
  // The pin of an expert that a launch will read where the host has it: until launched() says when that is
  // over.
  void hold_for_launch(ExpertStore::Pin pin) { unlaunched_.push_back(std::move(pin)); }
  // The launch is queued, and over with `done`. False: the expert is no such one.
  bool launched(experts::ExpertId id, const device::Event& done);

  // Those that an event stands for. The others go when that event, or the launch, is known.
  std::size_t size() const { return held_.size(); }
  bool empty() const { return held_.empty(); }
  std::vector<experts::ExpertId> ids() const;
  void release();       // those that nobody needs any more
  void wait_for_one();  // and releases it. REQUIRES: size() > 0
  // Until nobody needs any. No launch is to come: pins that wait for one go, too.
  void wait_for_all();

 private:
  struct Held {
    ExpertStore::Pin pin;
    device::Event until;
  };
  std::vector<Held> held_;
  std::vector<ExpertStore::Pin> unlaunched_;
};

}  // namespace sluice::fetch
