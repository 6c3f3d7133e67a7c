#include "fetch/dense/layout_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::fetch {
namespace {

constexpr std::size_t kPagePartsAtOnce = 2;
constexpr Bytes kPagePart = kMostPages / kPagePartsAtOnce;

// The runs of a layout; where reads leave pages behind, in parts that are read few at a time.
std::vector<FileRun> parts_of(const PieceLayout& layout, const WeightFiles& files) {
  if (!files.uses_page_cache()) return layout.runs;
  std::vector<FileRun> parts;
  for (const FileRun& run : layout.runs)
    for (Bytes at = 0; at < run.length; at += kPagePart)
      parts.push_back({run.file, run.offset + at, std::min(kPagePart, run.length - at), run.place + at});
  return parts;
}

std::size_t parts_at_once(std::size_t parts, const WeightFiles& files) {
  return files.uses_page_cache() ? std::min(parts, kPagePartsAtOnce) : parts;
}

}  // namespace

void start_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer) {
  const std::vector<FileRun> parts = parts_of(layout, files);
  for (std::size_t i = 0; i < parts_at_once(parts.size(), files); ++i) files.submit(parts[i], buffer, i);
}

void finish_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer) {
  const std::vector<FileRun> parts = parts_of(layout, files);
  std::size_t submitted = parts_at_once(parts.size(), files), finished = 0;
  std::vector<DiskCompletion> done;
  while (finished < parts.size()) {
    done.clear();
    files.reader().wait(files.uses_page_cache() ? 1 : parts.size(), done);
    SLUICE_CHECK(!done.empty());
    for (const DiskCompletion& completion : done) {
      files.check(parts[completion.tag], completion);
      ++finished;
      if (submitted == parts.size()) continue;
      files.submit(parts[submitted], buffer, submitted);
      ++submitted;
    }
  }
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
    finish_read(now, files, place(i));
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
