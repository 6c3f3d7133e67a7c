#include "fetch/weight_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "fetch/mmap_reader.h"

namespace sluice::fetch {
namespace {

constexpr struct {
  IoMode mode;
  std::string_view name;
} kModes[] = {{IoMode::kDirect, "direct"}, {IoMode::kBuffered, "buffered"}, {IoMode::kMmap, "mmap"}};

}  // namespace

IoMode parse_io_mode(std::string_view text) {
  for (const auto& entry : kModes)
    if (entry.name == text) return entry.mode;
  throw Error(ErrorKind::kUsage, "unknown way of reading").in("--io").expected("direct, buffered or mmap").found(text);
}

std::string_view io_mode_name(IoMode mode) { return kModes[static_cast<int>(mode)].name; }

WeightFiles::WeightFiles(const store::Checkpoint& checkpoint, const FetchOptions& options) : mode_(options.io) {
  const ReadMode read_mode = mode_ == IoMode::kDirect ? ReadMode::kDirect : ReadMode::kBuffered;
  for (const std::string& path : checkpoint.weight_files()) {
    files_.push_back(InputFile::open(path, read_mode));
    // Read-ahead would fill the page cache with what nobody asked for.
    if (mode_ != IoMode::kDirect) ::posix_fadvise(files_.back().fd(), 0, 0, POSIX_FADV_RANDOM);
    SLUICE_CHECK(files_.back().alignment() <= kBlockBytes);
  }
  reader_ = mode_ == IoMode::kMmap ? make_mmap_reader() : make_disk_reader(options.disk);
  if (options.wrap_reader) reader_ = options.wrap_reader(std::move(reader_));
}

WeightFiles::~WeightFiles() = default;

void WeightFiles::drop(std::uint32_t file, Bytes offset, Bytes length) const {
  if (uses_page_cache()) files_[file].drop_cache(offset, length);
}

Bytes WeightFiles::cached_bytes() const {
  Bytes total = 0;
  std::vector<unsigned char> resident;
  for (const InputFile& file : files_) {
    if (file.size() == 0) continue;
    void* map = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
    if (map == MAP_FAILED) throw io_error("mmap", file.path(), errno);
    constexpr Bytes kWindow = 256 * kMiB;  // bounds the vector of one byte a page
    for (Bytes at = 0; at < file.size(); at += kWindow) {
      const Bytes length = std::min(kWindow, file.size() - at);
      resident.resize((length + kBlockBytes - 1) / kBlockBytes);
      if (::mincore(static_cast<std::byte*>(map) + at, length, resident.data()) != 0) break;
      for (unsigned char page : resident) total += (page & 1) ? kBlockBytes : 0;
    }
    ::munmap(map, file.size());
  }
  return total;
}

void WeightFiles::read_now(std::span<const Range> ranges) {
  SLUICE_CHECK(reader_->in_flight() == 0);
  for (std::size_t i = 0; i < ranges.size(); ++i)
    reader_->submit({&files_[ranges[i].file], ranges[i].offset, ranges[i].length, ranges[i].dst, i});
  std::vector<DiskCompletion> done;
  reader_->wait(ranges.size(), done);
  for (const DiskCompletion& completion : done) {
    const Range& range = ranges[completion.tag];
    const Bytes inside = std::min(range.length, files_[range.file].size() - range.offset);
    if (completion.error != 0 || completion.bytes < inside)
      fail(range.file, range.offset, range.length, completion.error);
    drop(range.file, range.offset, range.length);
  }
}

void WeightFiles::fail(std::uint32_t file, Bytes offset, Bytes length, int error) const {
  if (error != 0)
    throw Error(ErrorKind::kIo, fmt::format("reading {} bytes failed: {}", length, std::strerror(error)))
        .in(files_[file].path(), offset)
        .fix("check the disk (kernel log), then run `sluice verify` on the model");
  throw Error(ErrorKind::kCorrupt, "the file ends inside a weight")
      .in(files_[file].path(), offset)
      .expected(fmt::format("{} bytes", length))
      .found("fewer: the file was cut while it was open")
      .fix("restore the file and run `sluice verify`");
}

}  // namespace sluice::fetch
