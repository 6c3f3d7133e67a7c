// Reads of whole layouts: begun, waited for, and one after the other beside the work on what has come.
#pragma once

#include <cstddef>
#include <functional>

#include "base/bytes.h"
#include "device/host_buffer.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// At its end nothing is in flight. Declare it behind the buffers, so that it ends before they go.
struct DrainAtEnd {
  WeightFiles& files;
  ~DrainAtEnd() { files.drain(); }
};

// What these reads have in the page cache at most, where they leave anything there.
inline constexpr Bytes kMostPages = 512 * kKiB;

void start_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer);
// Waits until all of the layout is in `buffer`, where start_read() reads it to; nothing else may be in
// flight. Error(kIo), (kCorrupt).
void finish_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer);

// Reads layouts 0 … count − 1, each into one half of `halves` while handle() works on the one before it in
// the other half. A single layout needs no second half. No read may be in flight in files.reader().
// Error(kIo), (kCorrupt), and what handle() throws.
void read_in_turns(WeightFiles& files, const device::HostBuffer& halves, std::size_t count,
                   const std::function<PieceLayout(std::size_t)>& layout_of,
                   const std::function<void(std::size_t, const PieceLayout&, const std::byte*)>& handle);
// What `halves` must have if no layout reads more than `most`.
Bytes halves_bytes(Bytes most, std::size_t count);

}  // namespace sluice::fetch
