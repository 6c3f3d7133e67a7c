#include "fetch/weight_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "fetch/mmap_reader.h"

namespace sluice::fetch {
WeightFiles::WeightFiles(const store::Checkpoint& checkpoint, const FetchOptions& options)
    : mode_(options.io) {
  const ReadMode read_mode = mode_ == IoMode::kDirect ? ReadMode::kDirect : ReadMode::kBuffered;
  for (const std::string& path : checkpoint.weight_files()) {
    files_.push_back(InputFile::open(path, read_mode));
    // Read-ahead would fill the page cache with unwanted pages.
    if (mode_ != IoMode::kDirect) ::posix_fadvise(files_.back().fd(), 0, 0, POSIX_FADV_RANDOM);
    SLUICE_CHECK(files_.back().alignment() <= kBlockBytes);
  }
  make_reader_ = [options] {
    auto reader = options.io == IoMode::kMmap ? make_mmap_reader() : make_disk_reader(options.disk);
    return options.wrap_reader ? options.wrap_reader(std::move(reader)) : std::move(reader);
  };
  reader_ = make_reader_();
}

WeightFiles::~WeightFiles() = default;

Bytes WeightFiles::cached_bytes() const {
  Bytes total = 0;
  std::vector<unsigned char> resident;
  for (const InputFile& file : files_) {
    if (file.size() == 0) continue;
    void* map = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
    if (map == MAP_FAILED) throw io_error("mmap", file.path(), errno);
    constexpr Bytes kWindow = 256 * kMiB;  // bounds the vector of one byte per page
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

DiskReader& WeightFiles::reader() {
  if (!reader_) reader_ = make_reader_();
  return *reader_;
}

void WeightFiles::submit(const FileRun& run, std::byte* buffer, std::uint64_t tag) {
  reader().submit({&files_[run.file], run.offset, run.length, buffer + run.place, tag});
}

void WeightFiles::check(const FileRun& run, const DiskCompletion& completion) const {
  const InputFile& file = files_[run.file];
  const Bytes inside = std::min(run.length, file.size() - std::min(file.size(), run.offset));
  // The reader reports ENODATA for a file that has become shorter since it was opened.
  if (completion.error != 0 && completion.error != ENODATA)
    throw Error(ErrorKind::kIo,
                fmt::format("reading {} bytes failed: {}", run.length, std::strerror(completion.error)))
        .in(file.path(), run.offset)
        .fix(
            "check the disk (kernel log), then check a packed store with `sluice verify`, or get the model "
            "again");
  if (completion.error != 0 || completion.bytes < inside)
    throw Error(ErrorKind::kCorrupt, "the file ends inside a weight")
        .in(file.path(), run.offset)
        .expected(fmt::format("{} bytes", inside))
        .found("fewer: the file was cut while it was open")
        .fix("restore the file (`sluice verify` checks a packed store)");
  // Drops the whole file: the kernel keeps pages in folios larger than a run's odd ends, and drops only whole
  // folios.
  if (uses_page_cache()) file.drop_cache(0, file.size());
}

void WeightFiles::drain() noexcept {
  try {
    std::vector<DiskCompletion> ignored;
    while (reader_ && reader_->in_flight() > 0) reader_->wait(reader_->in_flight(), ignored);
  } catch (...) {
    reader_.reset();  // waits for reads that have started
  }
}

void WeightFiles::give_up_reader() noexcept {
  drain();
  reader_.reset();
}

}  // namespace sluice::fetch
