// The weight files of one checkpoint, opened for one way of reading, and their reader with its requests in
// flight.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/files/disk.h"
#include "base/files/file.h"
#include "fetch/fetch_options.h"
#include "fetch/piece_layout.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// Thread-compatible.
class WeightFiles {
 public:
  WeightFiles(const store::Checkpoint& checkpoint, const FetchOptions& options);
  ~WeightFiles();

  // Makes a new reader after drain() had to give up the old one.
  DiskReader& reader();
  const InputFile& file(std::uint32_t index) const { return files_[index]; }
  const std::string& path(std::uint32_t index) const { return files_[index].path(); }
  IoMode mode() const { return mode_; }
  // Whether reads in flight have pages in the page cache that must be counted as staging.
  bool uses_page_cache() const { return mode_ != IoMode::kDirect; }
  // Bytes of all files that are in the page cache now (mincore), those that other programs have read
  // included.
  Bytes cached_bytes() const;

  // Starts reading one run to buffer + run.place; its completion comes from reader() with this tag.
  void submit(const FileRun& run, std::byte* buffer, std::uint64_t tag);
  // Checks a completion: Error(kIo) or (kCorrupt) naming file and place unless the whole run was read. Drops
  // the run's pages from the page cache.
  void check(const FileRun& run, const DiskCompletion& completion) const;
  // Waits until nothing is in flight, successful or not, so that buffers may go away. A reader that cannot
  // even wait is given up together with its counters. Never throws.
  void drain() noexcept;
  // Gives up a reader that has thrown, together with its counters; the next read makes another one.
  void give_up_reader() noexcept;

 private:
  IoMode mode_;
  std::vector<InputFile> files_;
  std::function<std::unique_ptr<DiskReader>()> make_reader_;
  std::unique_ptr<DiskReader> reader_;
};

}  // namespace sluice::fetch
