#include "fetch/mmap_reader.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

namespace sluice::fetch {
namespace {

// One pointer a thread: a fault is the copy's of the thread in which it happens. Volatile: the compiler sees
// no reader between the two stores around a copy.
thread_local sigjmp_buf* volatile fault_target = nullptr;

// The handler that ours replaces; set before ours is installed.
struct sigaction before {};

// Passes signals that are not ours to the previous handler.
extern "C" void on_bus_error(int signal, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;  // otherwise a process sent it
  if (fault && fault_target != nullptr) siglongjmp(*fault_target, 1);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else if (fault || before.sa_handler == SIG_DFL) {  // ends the program
    std::signal(SIGBUS, SIG_DFL);
    if (!fault) ::raise(SIGBUS);  // a fault repeats by itself
  }
}

bool is_set() {
  struct sigaction now {};
  ::sigaction(SIGBUS, nullptr, &now);
  return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error;
}

// Handlers belong to the process, readers to a thread: the first copy under way installs our handler, and the
// last one restores the previous handler, unless other code has set another one meanwhile.
class BusErrorHandler {
 public:
  BusErrorHandler() {
    const std::lock_guard lock(mutex_);
    if (copies_++ > 0 || is_set()) return;
    ::sigaction(SIGBUS, nullptr, &before);
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_NODEFER | SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
  }
  ~BusErrorHandler() {
    const std::lock_guard lock(mutex_);
    if (--copies_ == 0 && is_set()) ::sigaction(SIGBUS, &before, nullptr);
  }
  BusErrorHandler(const BusErrorHandler&) = delete;
  BusErrorHandler& operator=(const BusErrorHandler&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int copies_ = 0;
};

// A page that the disk cannot deliver, or that was cut off the file meanwhile, raises SIGBUS; this turns it
// into EIO.
int copy_or_errno(std::byte* dst, const std::byte* src, Bytes length) {
  const BusErrorHandler handler;
  sigjmp_buf target;
  volatile int error = 0;
  if (sigsetjmp(target, 1) == 0) {
    fault_target = &target;
    std::memcpy(dst, src, length);
  } else {
    error = EIO;
  }
  fault_target = nullptr;
  return error;
}

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
        // Read-ahead would fill the page cache with unwanted pages.
        ::madvise(map, span, MADV_RANDOM);
        completion.error =
            copy_or_errno(read.dst, static_cast<const std::byte*>(map) + (read.offset - first), length);
        ::munmap(map, span);
        completion.bytes = completion.error == 0 ? length : 0;
      }
    }
    counters_.bytes += completion.bytes;
    counters_.reads += 1;
    counters_.requests += 1;
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
