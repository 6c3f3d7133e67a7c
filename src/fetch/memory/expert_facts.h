// Facts of a model's experts that never change: how they are stored, and how large the largest are.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "codec/matrix_format.h"

namespace sluice::fetch {

struct ExpertFacts {
  bool split = true;          // every expert is stored as sm and exp, so states C, S and E exist
  bool sliced = false;        // every expert is stored as msb and lsb
  bool can_be_packed = true;  // all are in tiles with their matrices' own columns
  std::vector<const codec::MatrixFormat*> formats;  // formats of their matrices in views, each once
  // The largest of any expert.
  Bytes largest_read = 0;                    // in memory, of all parts
  Bytes largest_resident = 0;                // in state F, or both slices
  Bytes largest_buffers = 0;                 // all that it has on its way
  Bytes largest_base = 0, largest_rest = 0;  // its regions; for slices MSB and LSB
};

// What experts on their way need of ExpertStoreOptions::staging.
struct StagingNeeds {
  Bytes least = 0;       // one expert of any kind
  Bytes per_expert = 0;  // the most that one more takes
};

}  // namespace sluice::fetch
