#include "store/pack/data_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace sluice::store {

namespace {

Bytes size_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw io_error("fstat", path, errno);
  return static_cast<Bytes>(info.st_size);
}

}  // namespace

DataWriter DataWriter::open(const std::string& path, Bytes keep) {
  DataWriter file;
  file.path_ = path;
  do {
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ < 0) throw io_error("create", path, errno);
  if (const Bytes size = size_of(file.fd_, path); size < keep) {
    throw Error(ErrorKind::kCorrupt, "the unfinished file is shorter than its journal says")
        .in(path, size)
        .expected(fmt::format("at least {} bytes", keep))
        .found(fmt::format("{}", size))
        .fix("remove the .partial directory and pack again");
  }
  if (::ftruncate(file.fd_, static_cast<off_t>(keep)) != 0) throw io_error("truncate", path, errno);
  file.size_ = keep;
  return file;
}

DataWriter::DataWriter(DataWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      dirty_(other.dirty_),
      write_back_(other.write_back_),
      path_(std::move(other.path_)) {}

DataWriter& DataWriter::operator=(DataWriter&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = other.size_;
    dirty_ = other.dirty_;
    write_back_ = other.write_back_;
    path_ = std::move(other.path_);
  }
  return *this;
}

DataWriter::~DataWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void DataWriter::write_at(Bytes offset, std::span<const std::byte> data) {
  if (data.empty()) return;
  check_size();
  dirty_ = true;
  size_ = std::max(size_, offset + data.size());
  const Bytes bytes = data.size();
  while (!data.empty()) {
    const ssize_t n =
        ::pwrite(fd_, data.data(), std::min<std::size_t>(data.size(), kGiB), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      Error failure = io_error("write", path_, error);
      failure.in(path_, offset);
      if (error == ENOSPC || error == EDQUOT)
        failure.fix("free some space, then run the same command again: it goes on where it stopped");
      throw failure;
    }
    offset += static_cast<Bytes>(n);
    data = data.subspan(static_cast<std::size_t>(n));
  }
  write_back_.wrote(fd_, bytes, path_);
}

void DataWriter::write_zeros(Bytes offset, Bytes length) {
  static constexpr std::array<std::byte, kBlockBytes> kZeros{};
  while (length > 0) {
    const Bytes piece = std::min<Bytes>(length, kZeros.size());
    write_at(offset, std::span(kZeros).first(static_cast<std::size_t>(piece)));
    offset += piece;
    length -= piece;
  }
}

void DataWriter::check_size() const {
  const Bytes found = size_of(fd_, path_);
  if (found == size_) return;
  throw Error(ErrorKind::kCorrupt, "the unfinished file is not as long as what was written to it")
      .in(path_, std::min(found, size_))
      .expected(fmt::format("{} bytes", size_))
      .found(fmt::format("{}", found))
      .fix("something else has changed it: remove the .partial directory and pack again");
}

void DataWriter::sync() {
  if (fd_ < 0 || !dirty_) return;
  check_size();
  if (::fdatasync(fd_) != 0 && errno != EINVAL) throw io_error("fdatasync", path_, errno);
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
  dirty_ = false;
}

}  // namespace sluice::store
