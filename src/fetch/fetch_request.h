// What FetchExecutor is asked for: one expert, from disk to a view.
#pragma once

#include <cstddef>
#include <cstdint>

#include "experts/core/ids.h"
#include "fetch/expert_layout.h"

namespace sluice::fetch {

enum class Urgency : std::uint8_t {
  kDemand,    // the running event waits for it
  kPrefetch,  // an event may come that uses it
  kUpdate,    // it is to stay in memory, though no event uses it
};

// One value for each urgency.
template <class T>
struct ByUrgency {
  T demand{}, prefetch{}, update{};
  T& operator[](Urgency urgency) {
    return urgency == Urgency::kDemand ? demand : urgency == Urgency::kPrefetch ? prefetch : update;
  }
};

// Non-owning. Buffers have the sizes that the layout says.
struct FetchRequest {
  experts::ExpertId id;
  const ExpertLayout* layout = nullptr;
  std::byte* base = nullptr;  // the buffer of layout->base
  std::byte* rest = nullptr;  // the buffer of layout->rest; null if the view needs nothing of it
  // Where the matrices are made; `base` itself if it is the view. Null: the view is `packed`, or of slices,
  // and needs only regions that are read and checked.
  std::byte* view = nullptr;
  bool read_base = false, read_rest = false;  // false: the region's bytes are already in memory

  // Runs are numbered through: those of `base`, then those of `rest`.
  bool is_of_base(std::uint32_t run) const { return run < layout->base.runs.size(); }
  const FileRun& file_run(std::uint32_t run) const {
    return is_of_base(run) ? layout->base.runs[run] : layout->rest.runs[run - layout->base.runs.size()];
  }
};

}  // namespace sluice::fetch
