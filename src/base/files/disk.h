// Asynchronous reads, several in flight. One interface, several implementations: io_uring and a pread thread
// pool over O_DIRECT or buffered files, and a fault injector for tests that wraps either. (fetch/ builds
// Setting::kIo mmap on the same interface.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/file.h"

namespace sluice {

// One read. In direct mode offset, length and dst are multiples of the file's alignment(); a read may reach
// past the end of the file by less than one block (the tail that direct reads are rounded up to): that is not
// an error, and what dst holds there afterwards is not specified (the kernel may transfer the whole last
// block of the file). A read that reaches further, or a file that has become shorter than size(), completes
// with ENODATA. `file` and `dst` must outlive the completion.
struct DiskRead {
  const InputFile* file = nullptr;
  Bytes offset = 0;
  Bytes length = 0;
  std::byte* dst = nullptr;
  std::uint64_t tag = 0;  // chosen by the caller; comes back in the completion
};

struct DiskCompletion {
  std::uint64_t tag = 0;
  int error = 0;    // 0, or an errno (EIO, ENODATA …) after retries of short reads and EINTR/EAGAIN
  Bytes bytes = 0;  // bytes delivered (≥ the part of the range inside the file when error == 0)
};

struct DiskCounters {
  Bytes bytes = 0;             // delivered
  std::uint64_t reads = 0;     // submitted by callers
  std::uint64_t requests = 0;  // given to the device for them; the rest of a short read is not counted again
  double busy_s = 0;           // wall time with at least one read in flight, as the owner thread saw it
};

// Thread-compatible: one owner thread submits and waits. Reads start at the next wait() or, beyond
// `queue_depth`, as earlier ones finish, in order of submission. Reads that were submitted one after the
// other and are neighbours in a file, in this order, go to the device as one request of at most
// `segment_bytes`. A request that fails is repeated read by read, so an error belongs to one read only. The
// destructor waits for reads that have started, because they write to the callers' buffers, and drops reads
// that have not.
class DiskReader {
 public:
  virtual ~DiskReader() = default;
  virtual void submit(const DiskRead& read) = 0;
  // Appends finished reads to `done`. Waits until at least `min_completions` have been appended by this call
  // (fewer only if fewer are in flight). 0 polls.
  virtual void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) = 0;
  virtual std::size_t in_flight() const = 0;  // submitted and not yet handed out by wait()
  virtual DiskCounters counters() const = 0;
  virtual std::string name() const = 0;  // "io_uring", "pread"
};

enum class DiskMethod {
  kAuto,     // io_uring, or pread where the kernel or a seccomp filter forbids io_uring
  kIoUring,  // Error(kUnsupported) where forbidden
  kPread,    // thread pool
};

struct DiskOptions {
  DiskMethod method = DiskMethod::kAuto;
  unsigned queue_depth = 16;  // requests (segments) at the device at once; at least 1, at most 4096
  // Longer reads are split into segments of this size, each one request to the device. A multiple of
  // kBlockBytes, at most 1 GiB.
  Bytes segment_bytes = kMiB;
  unsigned pread_threads = 4;  // for kPread; at most queue_depth are started
};

// Error(kUsage) for options out of range.
std::unique_ptr<DiskReader> make_disk_reader(const DiskOptions& options);

// Test double. `fault(read)` is asked once for each submitted read and returns the errno to fail it with, or
// 0 to let it pass. `broken(call)` (may be empty) is asked at every submit() and wait(), before they do
// anything, and returns the errno to throw Error(kIo) with, or 0.
enum class DiskCall { kSubmit, kWait };
std::unique_ptr<DiskReader> make_faulty_reader(std::unique_ptr<DiskReader> inner,
                                               std::function<int(const DiskRead&)> fault,
                                               std::function<int(DiskCall)> broken = {});

}  // namespace sluice
