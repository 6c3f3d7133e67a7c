#include "fetch/mmap_reader.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace sluice::fetch {
namespace {

class MmapReader final : public DiskReader {
 public:
  void submit(const DiskRead& read) override {
    const auto start = std::chrono::steady_clock::now();
    DiskCompletion completion{read.tag, 0, 0};
    struct stat status {};
    if (::fstat(read.file->fd(), &status) != 0) {
      completion.error = errno;
    } else if (const Bytes size = static_cast<Bytes>(status.st_size); read.offset < size) {
      const Bytes first = round_down(read.offset, kBlockBytes);
      const Bytes length = std::min(read.length, size - read.offset);
      const Bytes span = read.offset - first + length;
      void* map = ::mmap(nullptr, span, PROT_READ, MAP_SHARED, read.file->fd(), static_cast<off_t>(first));
      if (map == MAP_FAILED) {
        completion.error = errno;
      } else {
        std::memcpy(read.dst, static_cast<const std::byte*>(map) + (read.offset - first), length);
        ::munmap(map, span);
        completion.bytes = length;
      }
    }
    counters_.bytes += completion.bytes;
    counters_.reads += 1;
    counters_.busy_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    finished_.push_back(completion);
  }

  void wait(std::size_t, std::vector<DiskCompletion>& done) override {
    done.insert(done.end(), finished_.begin(), finished_.end());
    finished_.clear();
  }

  std::size_t in_flight() const override { return finished_.size(); }
  DiskCounters counters() const override { return counters_; }
  std::string name() const override { return "mmap"; }

 private:
  std::vector<DiskCompletion> finished_;
  DiskCounters counters_;
};

}  // namespace

std::unique_ptr<DiskReader> make_mmap_reader() { return std::make_unique<MmapReader>(); }

}  // namespace sluice::fetch
