// The weight files of one checkpoint, opened for one way of reading, and the reader that has requests in flight.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/file.h"
#include "device/accountant.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

enum class IoMode {
  kDirect,    // O_DIRECT: nothing of ours stays in the page cache
  kBuffered,  // through the page cache; pages are dropped after each read
  kMmap,      // mapped and copied; pages are dropped after each read
};
IoMode parse_io_mode(std::string_view text);          // "direct" "buffered" "mmap"; Error(kUsage)
std::string_view io_mode_name(IoMode mode);

struct FetchOptions {
  IoMode io = IoMode::kDirect;
  DiskOptions disk;
  // Tests wrap the reader to inject faults; empty: as it is.
  std::function<std::unique_ptr<DiskReader>(std::unique_ptr<DiskReader>)> wrap_reader;
};

// Thread-compatible. Reads are given as (file index, offset, length) and completed through reader().
class WeightFiles {
 public:
  WeightFiles(const store::Checkpoint& checkpoint, const FetchOptions& options);
  ~WeightFiles();

  DiskReader& reader() { return *reader_; }
  const InputFile& file(std::uint32_t index) const { return files_[index]; }
  const std::string& path(std::uint32_t index) const { return files_[index].path(); }
  IoMode mode() const { return mode_; }
  // True if pages of reads in flight are in the page cache and must be counted as staging.
  bool uses_page_cache() const { return mode_ != IoMode::kDirect; }
  // After a read: leaves nothing of it in the page cache (no-op under kDirect).
  void drop(std::uint32_t file, Bytes offset, Bytes length) const;
  // Bytes of all files that are in the page cache now (mincore).
  Bytes cached_bytes() const;

  // Reads whole ranges and waits; must not be mixed with reads in flight. Offsets, lengths and dst block-aligned.
  struct Range {
    std::uint32_t file;
    Bytes offset, length;
    std::byte* dst;
  };
  void read_now(std::span<const Range> ranges);
  // Error for a failed or short read of this range.
  [[noreturn]] void fail(std::uint32_t file, Bytes offset, Bytes length, int error) const;

 private:
  IoMode mode_;
  std::vector<InputFile> files_;
  std::unique_ptr<DiskReader> reader_;
};

}  // namespace sluice::fetch
