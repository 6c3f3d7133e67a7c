#include "model/synth/synth_shard.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/error.h"

namespace sluice::model {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr Bytes kBatchBytes = 16 * kMiB;
constexpr Bytes kJobBytes = 512 * kKiB;  // one thread's work at a time; a longer row is one job

// A new file that is written from start to end past the page cache: a checkpoint is larger than the page
// cache, and writing it back would cost more CPU time than making it. File systems without O_DIRECT get plain
// writes.
class ShardFile {
 public:
  explicit ShardFile(const std::string& path) : path_(path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    fd_ = ::open(path.c_str(), kFlags | O_DIRECT, 0666);
    // The first open may have created the file.
    if (fd_ < 0 && errno == EINVAL) fd_ = ::open(path.c_str(), kFlags & ~O_EXCL, 0666);
    if (fd_ < 0) throw io_error("create", path, errno);
  }
  ~ShardFile() { ::close(fd_); }
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  // Address and size must be multiples of kBlockBytes.
  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t written = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(size_));
      if (written < 0) {
        if (errno == EINTR) continue;
        if (errno == EINVAL && leave_direct()) continue;
        throw io_error("write", path_, errno).in(path_, size_);
      }
      size_ += static_cast<Bytes>(written);
      data = data.subspan(static_cast<std::size_t>(written));
      if (size_ % kBlockBytes != 0) leave_direct();  // a short write ended within a block
    }
  }
  // Cuts off the padding of the last block and waits for the disk.
  void finish(Bytes size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) throw io_error("ftruncate", path_, errno);
    if (::fsync(fd_) != 0) throw io_error("fsync", path_, errno);
  }

 private:
  bool leave_direct() {
    const int flags = ::fcntl(fd_, F_GETFL);
    return flags != -1 && (flags & O_DIRECT) != 0 && ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0;
  }

  std::string path_;
  int fd_ = -1;
  Bytes size_ = 0;
};

// Memory whose address is a multiple of kBlockBytes.
class BlockBuffer {
 public:
  // Grows to `size` and keeps the first `used` bytes.
  void grow(Bytes size, Bytes used) {
    if (size <= size_) return;
    size = round_up(size, kBlockBytes);
    std::unique_ptr<std::byte, Free> larger(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, size)));
    if (larger == nullptr) throw std::bad_alloc();
    if (used > 0) std::memcpy(larger.get(), data_.get(), used);
    data_ = std::move(larger);
    size_ = size;
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  Bytes size_ = 0;
};

// Rows of one tensor that one thread makes, starting at byte `begin` of the batch.
struct Job {
  const SynthTensor* tensor;
  std::uint64_t first_row, rows;
  Bytes begin;
};

// Makes batches on all threads while a separate thread writes the batch before.
class ShardWriter {
 public:
  ShardWriter(const std::string& path, std::string_view head, ThreadPool& threads)
      : file_(path), threads_(threads) {
    buffers_[0].grow(head.size(), 0);
    std::memcpy(buffers_[0].data(), head.data(), head.size());
    filled_ = used_ = head.size();
  }
  ~ShardWriter() {
    if (writing_.valid()) writing_.wait();  // the writing thread uses a buffer
  }

  void add(const SynthTensor& tensor, std::uint64_t first_row, std::uint64_t rows) {
    const Bytes bytes = rows * tensor.row_bytes;
    buffers_[turn_].grow(std::max(used_ + bytes, kBatchBytes + kJobBytes), filled_);
    jobs_.push_back({&tensor, first_row, rows, used_});
    used_ += bytes;
  }
  bool full() const { return used_ >= kBatchBytes; }
  // Throws the error of writing the batch before.
  void flush() {
    make();
    wait();
    // Writes whole blocks only; the rest opens the next batch.
    const Bytes whole = round_down(used_, kBlockBytes), rest = used_ - whole;
    BlockBuffer& next = buffers_[1 - turn_];
    next.grow(kBlockBytes, 0);
    std::memcpy(next.data(), buffers_[turn_].data() + whole, rest);
    writing_ = std::async(
        std::launch::async,
        [this, data = std::span<const std::byte>(buffers_[turn_].data(), whole)] { file_.write(data); });
    written_ += whole;
    filled_ = used_ = rest;
    turn_ = 1 - turn_;
  }
  void finish() {
    make();
    wait();
    const Bytes padded = round_up(used_, kBlockBytes);
    buffers_[turn_].grow(padded, used_);
    std::memset(buffers_[turn_].data() + used_, 0, padded - used_);
    file_.write({buffers_[turn_].data(), padded});
    file_.finish(written_ + used_);
  }

 private:
  void make() {
    threads_.parallel_for(jobs_.size(), [&](std::size_t i) {
      const Job& job = jobs_[i];
      // Heads of files are a multiple of 8 bytes, and tensors have an even number, so words are aligned.
      for (std::uint64_t r = 0; r < job.rows; ++r)
        job.tensor->fill_row(job.first_row + r,
                             buffers_[turn_].data() + job.begin + r * job.tensor->row_bytes);
    });
    jobs_.clear();
  }
  void wait() {
    if (writing_.valid()) writing_.get();
  }

  ShardFile file_;
  ThreadPool& threads_;
  std::vector<Job> jobs_;
  BlockBuffer buffers_[2];
  int turn_ = 0;
  Bytes used_ = 0;    // in buffers_[turn_], including jobs that are still to be made
  Bytes filled_ = 0;  // how many of them were there before the jobs
  Bytes written_ = 0;
  std::future<void> writing_;
};

}  // namespace

SynthTensor tensor_of(const SynthValues& values, std::uint64_t rows) {
  return {rows, values.row_bytes(),
          [values](std::uint64_t row, std::byte* out) { values.fill_row(row, out); }};
}

void write_synth_shard(const std::string& path, std::string_view head, std::span<const SynthTensor> tensors,
                       ThreadPool& threads, const std::function<void(Bytes)>& on_progress) {
  SLUICE_CHECK(head.size() % 8 == 0, path);
  ShardWriter writer(path, head, threads);
  Bytes done = 0;
  for (const SynthTensor& tensor : tensors) {
    const std::uint64_t rows_per_job = std::max<std::uint64_t>(1, kJobBytes / tensor.row_bytes);
    for (std::uint64_t row = 0; row < tensor.rows; row += rows_per_job) {
      const std::uint64_t rows = std::min(rows_per_job, tensor.rows - row);
      writer.add(tensor, row, rows);
      done += rows * tensor.row_bytes;
      if (!writer.full()) continue;
      writer.flush();
      on_progress(done);
    }
  }
  writer.finish();
  on_progress(done);
}

}  // namespace sluice::model
