#include "fetch/dense/layout_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::fetch {

void start_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer) {
  for (std::size_t i = 0; i < layout.runs.size(); ++i) files.submit(layout.runs[i], buffer, i);
}

void finish_read(const PieceLayout& layout, WeightFiles& files) {
  std::vector<DiskCompletion> done;
  files.reader().wait(layout.runs.size(), done);
  SLUICE_CHECK(done.size() == layout.runs.size());
  for (const DiskCompletion& completion : done) files.check(layout.runs[completion.tag], completion);
}

void read_in_turns(WeightFiles& files, const device::HostBuffer& halves, std::size_t count,
                   const std::function<PieceLayout(std::size_t)>& layout_of,
                   const std::function<void(std::size_t, const PieceLayout&, const std::byte*)>& handle) {
  if (count == 0) return;
  const DrainAtEnd drain{files};  // even if handle() throws
  const Bytes half = count > 1 ? halves.size() / 2 : halves.size();
  const auto place = [&](std::size_t i) { return halves.data() + i % 2 * half; };
  PieceLayout now = layout_of(0);
  SLUICE_CHECK(now.read_bytes <= half);
  start_read(now, files, place(0));
  for (std::size_t i = 0; i < count; ++i) {
    finish_read(now, files);
    PieceLayout next;
    if (i + 1 < count) {
      next = layout_of(i + 1);
      SLUICE_CHECK(next.read_bytes <= half);
      start_read(next, files, place(i + 1));
    }
    handle(i, now, place(i));
    now = std::move(next);
  }
}

Bytes halves_bytes(Bytes most, std::size_t count) {
  return std::min<std::size_t>(count, 2) * round_up(most, kBlockBytes);
}

}  // namespace sluice::fetch
