// Reads of any length that can be given up.
#pragma once

#include <algorithm>
#include <span>

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/stop_request.h"

namespace sluice::store {

// Fills `out` from `offset`. Error as InputFile::read_at(); (kInterrupted) if `stop`, asked every 4 MiB, says
// so.
inline void read_in_steps(const InputFile& file, Bytes offset, std::span<std::byte> out,
                          const StopRequest& stop) {
  constexpr std::size_t kStep = 4 * kMiB;
  while (!out.empty()) {
    stop_if(stop);
    const std::span<std::byte> step = out.first(std::min(kStep, out.size()));
    file.read_at(offset, step);
    offset += step.size();
    out = out.subspan(step.size());
  }
}

}  // namespace sluice::store
