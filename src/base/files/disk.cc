#include "base/files/disk.h"

#include <utility>

#include "base/error.h"
#include "base/files/disk_segments.h"

namespace sluice {
namespace {

void check(bool legal, std::string_view option, std::string_view expected, std::uint64_t found) {
  if (legal) return;
  throw Error(ErrorKind::kUsage, "option of the disk reader is out of range")
      .in(option)
      .expected(expected)
      .found(std::to_string(found))
      .fix("use a value in this range");
}

class FaultyReader final : public DiskReader {
 public:
  FaultyReader(std::unique_ptr<DiskReader> inner, std::function<int(const DiskRead&)> fault,
               std::function<int(DiskCall)> broken)
      : inner_(std::move(inner)), fault_(std::move(fault)), broken_(std::move(broken)) {}

  void submit(const DiskRead& read) override {
    throw_if_broken(DiskCall::kSubmit);
    const int error = fault_(read);
    if (error == 0) {
      inner_->submit(read);
    } else {
      ++faults_;
      failed_.push_back({.tag = read.tag, .error = error, .bytes = 0});
    }
  }

  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    throw_if_broken(DiskCall::kWait);
    const std::size_t failed = failed_.size();
    done.insert(done.end(), failed_.begin(), failed_.end());
    failed_.clear();
    inner_->wait(min_completions > failed ? min_completions - failed : 0, done);
  }

  std::size_t in_flight() const override { return inner_->in_flight() + failed_.size(); }

  DiskCounters counters() const override {
    DiskCounters counters = inner_->counters();
    counters.reads += faults_;
    return counters;
  }

  std::string name() const override { return inner_->name(); }

 private:
  void throw_if_broken(DiskCall call) const {
    if (const int error = broken_ ? broken_(call) : 0; error != 0)
      throw io_error(call == DiskCall::kSubmit ? "submit" : "wait", "faulty reader", error);
  }

  std::unique_ptr<DiskReader> inner_;
  std::function<int(const DiskRead&)> fault_;
  std::function<int(DiskCall)> broken_;
  std::vector<DiskCompletion> failed_;
  std::uint64_t faults_ = 0;
};

}  // namespace

std::unique_ptr<DiskReader> make_disk_reader(const DiskOptions& options) {
  check(options.queue_depth >= 1 && options.queue_depth <= 4096, "queue_depth", "1 to 4096",
        options.queue_depth);
  check(options.pread_threads >= 1 && options.pread_threads <= 256, "pread_threads", "1 to 256",
        options.pread_threads);
  check(options.segment_bytes >= kBlockBytes && options.segment_bytes <= kGiB &&
            options.segment_bytes % kBlockBytes == 0,
        "segment_bytes", "a multiple of 4096, at most 1 GiB", options.segment_bytes);

  if (options.method != DiskMethod::kPread) {
    if (std::unique_ptr<DiskReader> reader = make_uring_reader(options)) return reader;
    if (options.method == DiskMethod::kIoUring) {
      throw Error(ErrorKind::kUnsupported, "this kernel or container does not allow io_uring");
    }
  }
  return make_pread_reader(options);
}

std::unique_ptr<DiskReader> make_faulty_reader(std::unique_ptr<DiskReader> inner,
                                               std::function<int(const DiskRead&)> fault,
                                               std::function<int(DiskCall)> broken) {
  return std::make_unique<FaultyReader>(std::move(inner), std::move(fault), std::move(broken));
}

}  // namespace sluice
