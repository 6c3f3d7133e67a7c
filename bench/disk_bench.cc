// sluice_bench_disk [--dir PATH] [--size SIZE] [--rounds N] [--json FILE]
// Random reads of a file like the engine's: io_uring beside the pread threads, interleaved, with checked
// content. The file is made in --dir (default: the current directory) without a name, so that nothing remains
// however the program ends.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>

#include <sys/resource.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "measure.h"
#include "report.h"

namespace sluice {
namespace {

using bench::Workload;

// The number at byte offset 8·index of the file (splitmix64): every block can be checked by itself.
std::uint64_t number_at(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 27);
}

// The system removes the file when the program ends, killed or not. Where a nameless file cannot be opened
// again (no /proc), it keeps its name until the destructor.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& directory, Bytes size)
      : name_(fmt::format("{}/sluice_bench_disk.{}.tmp", directory, ::getpid())), path_(name_) {
    OutputFile file = OutputFile::create(name_);
    fd_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ >= 0) {
      ::unlink(name_.c_str());
      path_ = fmt::format("/proc/self/fd/{}", fd_);
      if (!can_be_opened(path_)) {
        file = OutputFile::create(name_);
        path_ = name_;
      }
    }
    try {
      std::vector<std::uint64_t> numbers(kMiB / 8);
      for (Bytes offset = 0; offset < size; offset += kMiB) {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number_at(offset / 8 + i);
        file.write(std::as_bytes(std::span(numbers)));
      }
      file.close();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~TemporaryFile() { remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }  // for reading it

 private:
  static bool can_be_opened(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }
  void remove() {
    if (path_ == name_) ::unlink(name_.c_str());
    if (fd_ >= 0) ::close(fd_);
  }

  const std::string name_;
  std::string path_;
  int fd_ = -1;
};

// CPU seconds of this process: all threads, including the kernel's part.
double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class RandomReads {
 public:
  RandomReads(const InputFile& file, Bytes request, unsigned depth, DiskMethod method, Bytes bytes_per_round)
      : file_(file),
        request_(request),
        depth_(depth),
        count_(std::max<Bytes>(depth, bytes_per_round / request)) {
    DiskOptions options;
    options.method = method;
    options.queue_depth = depth;
    options.segment_bytes = request;  // one request to the device each
    options.pread_threads = depth;
    reader_ = make_disk_reader(options);
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, depth * request)));
    SLUICE_CHECK(buffer_ != nullptr);
  }

  std::string name() const {
    return fmt::format("{:<9} {:>9} depth {}", reader_->name(), format_bytes(request_), depth_);
  }
  double bytes() const { return static_cast<double>(count_ * request_); }
  double cpu_s() const { return cpu_s_; }

  // Both methods of a round read the same offsets in the same order; each round has other offsets.
  void run(std::size_t round) {
    const double cpu_before = cpu_seconds();
    std::mt19937_64 random(round * 1000 + depth_ * 10 + request_);
    std::vector<std::size_t> free_slots;
    for (std::size_t slot = 0; slot < depth_; ++slot) free_slots.push_back(slot);
    std::vector<Bytes> offsets(depth_);
    std::vector<DiskCompletion> done;
    Bytes submitted = 0, finished = 0;
    while (finished < count_) {
      while (!free_slots.empty() && submitted < count_) {
        const std::size_t slot = free_slots.back();
        free_slots.pop_back();
        offsets[slot] = random() % (file_.size() / request_) * request_;
        reader_->submit({&file_, offsets[slot], request_, buffer_.get() + slot * request_, slot});
        ++submitted;
      }
      done.clear();
      reader_->wait(1, done);
      for (const DiskCompletion& completion : done) {
        if (completion.error != 0) throw io_error("read", file_.path(), completion.error);
        check(completion.tag, offsets[completion.tag]);
        free_slots.push_back(completion.tag);
        ++finished;
      }
    }
    if (round > 0) cpu_s_ += cpu_seconds() - cpu_before;
  }

 private:
  // Checks the first and the last number of every block: cheap beside the read, and a misplaced block cannot
  // pass.
  void check(std::size_t slot, Bytes offset) const {
    const std::byte* data = buffer_.get() + slot * request_;
    for (Bytes block = 0; block < request_; block += kBlockBytes) {
      for (const Bytes at : {block, block + kBlockBytes - 8}) {
        std::uint64_t number;
        std::memcpy(&number, data + at, 8);
        if (number != number_at((offset + at) / 8)) {
          throw Error(ErrorKind::kCorrupt, "read returned other data than was written")
              .in(file_.path(), offset + at);
        }
      }
    }
  }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  const InputFile& file_;
  Bytes request_;
  unsigned depth_;
  Bytes count_;
  std::unique_ptr<DiskReader> reader_;
  std::unique_ptr<std::byte[], Free> buffer_;
  double cpu_s_ = 0;
};

int run(int argc, char** argv) {
  bench::check_options(argc, argv, {"dir", "size", "rounds", "json"});
  const std::string directory = bench::option(argc, argv, "dir", ".");
  const Bytes size = round_up(parse_size(bench::option(argc, argv, "size", "1GiB"), "--size"), 4 * kMiB);
  const std::size_t rounds = bench::whole_option(argc, argv, "rounds", 5);
  const Bytes per_round = std::min<Bytes>(size, 256 * kMiB);

  const TemporaryFile temporary(directory, size);
  const InputFile file = InputFile::open(temporary.path(), ReadMode::kDirect);
  fmt::print("{} in {}, O_DIRECT, alignment {}, random reads of {} per round, {} rounds\n",
             format_bytes(size), directory, file.alignment(), format_bytes(per_round), rounds);

  std::vector<std::unique_ptr<RandomReads>> reads;
  std::vector<Workload> workloads;
  for (const Bytes request : {256 * kKiB, kMiB, 4 * kMiB}) {
    for (const unsigned depth : {1u, 4u, 8u}) {
      for (const DiskMethod method : {DiskMethod::kIoUring, DiskMethod::kPread}) {
        try {
          reads.push_back(std::make_unique<RandomReads>(file, request, depth, method, per_round));
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::kUnsupported) throw;
          fmt::print("left out: {}\n", e.what());
          continue;
        }
        RandomReads* reader = reads.back().get();
        workloads.push_back({reader->name(), [reader](std::size_t round) { reader->run(round); }});
      }
    }
  }
  bench::measure(workloads, rounds);
  fmt::print("{:<30} {:>36} {:>7} {:>15}\n", "reads", "median (min … max)", "GB/s", "CPU s per GB");
  // The device's own rate: the fastest read of each round, of any size and depth.
  std::vector<double> seconds_per_byte(rounds, 1);
  for (std::size_t i = 0; i < workloads.size(); ++i)
    for (std::size_t round = 0; round < rounds; ++round)
      seconds_per_byte[round] =
          std::min(seconds_per_byte[round], workloads[i].seconds[round] / reads[i]->bytes());
  bench::Report report("disk", argc, argv);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const double seconds = bench::quantile(workloads[i].seconds, 0.5);
    fmt::print("{:<30} {:>36} {:>7.2f} {:>15.3f}\n", workloads[i].name, bench::times(workloads[i]),
               reads[i]->bytes() / seconds * 1e-9,
               reads[i]->cpu_s() / (reads[i]->bytes() * static_cast<double>(rounds) * 1e-9));
    report.add({.name = workloads[i].name,
                .bytes = reads[i]->bytes(),
                .seconds = workloads[i].seconds,
                .limit = "fastest read of the round",
                .shares = bench::shares_of(reads[i]->bytes(), workloads[i].seconds, 1, seconds_per_byte),
                .figures = {{"CPU s per GB",
                             reads[i]->cpu_s() / (reads[i]->bytes() * static_cast<double>(rounds) * 1e-9)}},
                .detail = workloads[i].name.starts_with("pread")});
  }
  report.write();
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "sluice_bench_disk: {}\n", e.what());
    return 1;
  }
}
