// How weight files are read.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/files/disk.h"

namespace sluice::fetch {

enum class IoMode {
  kDirect,    // O_DIRECT: no pages of ours in the page cache
  kBuffered,  // through the page cache; pages are dropped after each read
  kMmap,      // mapped and copied; pages are dropped after each read
};
IoMode parse_io_mode(std::string_view text);  // "direct" "buffered" "mmap"; Error(kUsage)
std::string_view io_mode_name(IoMode mode);

struct FetchOptions {
  IoMode io = IoMode::kDirect;
  DiskOptions disk;
  // Tests wrap the reader to inject faults; empty: no wrapper.
  std::function<std::unique_ptr<DiskReader>(std::unique_ptr<DiskReader>)> wrap_reader;
};

}  // namespace sluice::fetch
