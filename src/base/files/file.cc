#include "base/files/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/setting.h"

// Kernel 6.1 has these fields; the headers at build time may be older than the kernel that runs the program.
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x00002000U
#endif

namespace sluice {
namespace {

std::string use_buffered() { return "use " + Setting::kIo + " buffered"; }

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

void close_quietly(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

struct DirectAlignment {
  bool known = false;  // the kernel answered
  Bytes bytes = 0;     // 0: the file does not support direct I/O
};

DirectAlignment direct_alignment(int fd) {
  // struct statx is fixed at 256 bytes; stx_dio_mem_align and stx_dio_offset_align stand at bytes 152 and 156
  // (Linux, include/uapi/linux/stat.h), read by offset because older headers lack the fields.
  alignas(8) std::array<unsigned char, 256> raw{};
  static_assert(sizeof(struct statx) == 256);
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, raw.data()) != 0) return {};
  std::uint32_t mask = 0, memory = 0, offset = 0;
  std::memcpy(&mask, raw.data(), 4);
  std::memcpy(&memory, raw.data() + 152, 4);
  std::memcpy(&offset, raw.data() + 156, 4);
  if ((mask & STATX_DIOALIGN) == 0) return {};
  return {true, std::max(memory, offset)};
}

Error no_direct_io(const std::string& path) {
  return Error(ErrorKind::kUnsupported, "the file system does not support direct I/O")
      .in(path)
      .fix(use_buffered());
}

Error file_ends(const std::string& path, Bytes offset, Bytes wanted, Bytes got) {
  return Error(ErrorKind::kCorrupt, "file ends")
      .in(path, offset)
      .expected(std::to_string(wanted) + " bytes")
      .found(std::to_string(got))
      .fix("get the file again: download the model, or copy the store once more");
}

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Writes all of `data` at `offset`.
void write_all(int fd, const std::string& path, Bytes offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::size_t piece = std::min<std::size_t>(data.size(), kGiB);
    const ssize_t n = ::pwrite(fd, data.data(), piece, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      Error failure = io_error("write", path, error);
      failure.in(path, offset);
      if (error == ENOSPC || error == EDQUOT) failure.fix("free some space or choose another directory");
      throw failure;
    }
    offset += static_cast<Bytes>(n);
    data = data.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

// ---- InputFile

InputFile InputFile::open(const std::string& path, ReadMode mode) {
  // The path is checked before it is opened: opening a FIFO would wait for a writer.
  struct stat before {};
  if (::stat(path.c_str(), &before) != 0) throw io_error("open", path, errno);
  if (!S_ISREG(before.st_mode)) {
    throw Error(ErrorKind::kInvalid, "not a regular file")
        .in(path)
        .expected("a regular file")
        .found(S_ISDIR(before.st_mode) ? "a directory" : "a device, pipe or socket")
        .fix("name a file, or remove what stands in its place");
  }

  InputFile file;
  file.path_ = path;
  file.mode_ = mode;
  file.fd_ = open_retrying(path, O_RDONLY | (mode == ReadMode::kDirect ? O_DIRECT : 0));
  if (file.fd_ < 0) {
    if (mode == ReadMode::kDirect && errno == EINVAL) throw no_direct_io(path);
    throw io_error("open", path, errno);
  }
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0) throw io_error("fstat", path, errno);
  file.size_ = static_cast<Bytes>(info.st_size);

  if (mode == ReadMode::kDirect) {
    const DirectAlignment alignment = direct_alignment(file.fd_);
    if (alignment.known && alignment.bytes == 0) throw no_direct_io(path);
    if (alignment.bytes > kBlockBytes) {
      throw Error(ErrorKind::kUnsupported,
                  "direct I/O on this file system needs an alignment that stores do not have")
          .in(path)
          .expected("at most " + std::to_string(kBlockBytes) + " bytes")
          .found(std::to_string(alignment.bytes))
          .fix(use_buffered());
    }
    // Where the kernel does not say, 4096 is right for every file system that accepts O_DIRECT on 4 KiB
    // pages.
    file.alignment_ = alignment.known ? std::max<Bytes>(alignment.bytes, 1) : kBlockBytes;
  }
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)),
      alignment_(std::exchange(other.alignment_, 1)),
      mode_(other.mode_),
      path_(std::move(other.path_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  if (this != &other) {
    close_quietly(fd_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = std::exchange(other.size_, 0);
    alignment_ = std::exchange(other.alignment_, 1);
    mode_ = other.mode_;
    path_ = std::move(other.path_);
  }
  return *this;
}

InputFile::~InputFile() { close_quietly(fd_); }

namespace {

// Reads up to `length` bytes; fewer only at the end of the file. In direct mode all three must be aligned.
Bytes read_up_to(const InputFile& file, Bytes offset, std::byte* dst, Bytes length) {
  Bytes got = 0;
  while (got < length) {
    const std::size_t piece = static_cast<std::size_t>(std::min(length - got, kGiB));
    const ssize_t n = ::pread(file.fd(), dst + got, piece, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error failure = io_error("read", file.path(), errno);
      failure.in(file.path(), offset + got);
      if (file.mode() == ReadMode::kDirect && errno == EINVAL) failure.fix(use_buffered());
      throw failure;
    }
    if (n == 0) break;
    const Bytes next = got + static_cast<Bytes>(n);
    if (next % file.alignment() != 0)
      return next;  // a direct read stops at an unaligned place only at the end of the file
    got = next;
  }
  return got;
}

}  // namespace

void InputFile::read_at(Bytes offset, std::span<std::byte> out) const {
  SLUICE_CHECK(fd_ >= 0, path_);
  if (out.empty()) return;
  if (offset > size_ && offset + out.size() < offset) throw file_ends(path_, offset, out.size(), 0);

  const bool aligned = offset % alignment_ == 0 && out.size() % alignment_ == 0 &&
                       reinterpret_cast<std::uintptr_t>(out.data()) % alignment_ == 0;
  if (aligned) {
    const Bytes got = read_up_to(*this, offset, out.data(), out.size());
    if (got < out.size()) throw file_ends(path_, offset, out.size(), got);
    return;
  }

  // Unaligned reads in direct mode go through an aligned buffer.
  constexpr Bytes kBounceBytes = 256 * kKiB;
  const Bytes buffer_bytes = std::min(kBounceBytes, round_up(offset % alignment_ + out.size(), alignment_));
  const std::unique_ptr<std::byte, FreeDeleter> bounce(
      static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, round_up(buffer_bytes, kBlockBytes))));
  if (bounce == nullptr) throw io_error("allocate", path_, ENOMEM);
  Bytes done = 0;
  while (done < out.size()) {
    const Bytes begin = round_down(offset + done, alignment_);
    const Bytes skip = offset + done - begin;
    const Bytes got = read_up_to(*this, begin, bounce.get(), buffer_bytes);
    const Bytes usable = got > skip ? std::min<Bytes>(got - skip, out.size() - done) : 0;
    if (usable == 0) throw file_ends(path_, offset, out.size(), done);
    std::memcpy(out.data() + done, bounce.get() + skip, usable);
    done += usable;
  }
}

void InputFile::expect_all() const { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_WILLNEED); }

void InputFile::drop_cache(Bytes offset, Bytes length) const {
  if (fd_ < 0 || length == 0) return;
  // The kernel keeps pages that lie only partly inside the range, so the range grows to whole pages.
  const Bytes begin = round_down(offset, kBlockBytes);
  const Bytes end = round_up(offset + length, kBlockBytes);
  ::posix_fadvise(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED);
}

// ---- OutputFile

OutputFile OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.fd_ = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (file.fd_ < 0) {
    if (errno == EEXIST) throw name_is_taken(path);
    throw io_error("create", path, errno);
  }
  return file;
}

OutputFile OutputFile::open_for_append(const std::string& path, Bytes keep) {
  OutputFile file;
  file.path_ = path;
  file.fd_ = open_retrying(path, O_WRONLY);
  if (file.fd_ < 0) throw io_error("open", path, errno);
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0) throw io_error("fstat", path, errno);
  const Bytes size = static_cast<Bytes>(info.st_size);
  if (size < keep) throw file_ends(path, size, keep, size);
  if (size > keep && ::ftruncate(file.fd_, static_cast<off_t>(keep)) != 0) {
    throw io_error("truncate", path, errno);
  }
  file.size_ = keep;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)),
      write_back_(other.write_back_),
      path_(std::move(other.path_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    close_quietly(fd_);
    fd_ = std::exchange(other.fd_, -1);
    size_ = std::exchange(other.size_, 0);
    write_back_ = other.write_back_;
    path_ = std::move(other.path_);
  }
  return *this;
}

OutputFile::~OutputFile() { close_quietly(fd_); }

void OutputFile::write(std::span<const std::byte> data) {
  SLUICE_CHECK(fd_ >= 0, path_);
  write_all(fd_, path_, size_, data);
  size_ += data.size();
  write_back_.wrote(fd_, data.size(), path_);
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::pad_to(Bytes multiple) {
  SLUICE_CHECK(multiple > 0);
  static constexpr std::array<std::byte, kBlockBytes> kZeros{};
  Bytes missing = round_up(size_, multiple) - size_;
  while (missing > 0) {
    const Bytes piece = std::min<Bytes>(missing, kZeros.size());
    write(std::span<const std::byte>(kZeros).first(static_cast<std::size_t>(piece)));
    missing -= piece;
  }
}

void OutputFile::cut(Bytes keep) {
  SLUICE_CHECK(fd_ >= 0 && keep <= size_, path_);
  if (::ftruncate(fd_, static_cast<off_t>(keep)) != 0) throw io_error("truncate", path_, errno);
  size_ = keep;
}

void OutputFile::sync() {
  SLUICE_CHECK(fd_ >= 0, path_);
  // EINVAL and EROFS: a special file that cannot be synchronised, such as a device.
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    Error failure = io_error("fdatasync", path_, errno);
    throw failure.in(path_, size_);
  }
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

void OutputFile::close() {
  if (fd_ < 0) return;
  sync();
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && errno != EINTR) {
    Error failure = io_error("close", path_, errno);
    throw failure.in(path_, size_);
  }
}

// ---- Whole files

std::string read_text_file(const std::string& path, Bytes max_bytes) {
  max_bytes = std::min(max_bytes, Bytes{1} << 62);  // leaves room for the one extra byte below
  int fd = open_retrying(path, O_RDONLY);
  if (fd < 0) throw io_error("open", path, errno);
  struct Closer {
    int& fd;
    ~Closer() { close_quietly(fd); }
  } closer{fd};

  struct stat info {};
  if (::fstat(fd, &info) != 0) throw io_error("fstat", path, errno);
  if (S_ISDIR(info.st_mode))
    throw Error(ErrorKind::kInvalid, "not a file")
        .in(path)
        .expected("a file")
        .found("a directory")
        .fix("name a file in it");
  const auto too_large = [&](const std::string& found) {
    return Error(ErrorKind::kInvalid, "file is too large")
        .in(path)
        .expected("at most " + std::to_string(max_bytes) + " bytes")
        .found(found)
        .fix("check that it is the right file");
  };
  const Bytes size = static_cast<Bytes>(info.st_size);
  if (S_ISREG(info.st_mode) && size > max_bytes) throw too_large(std::to_string(size));

  // Reads to the end of the file and not to its size: pipes and files in /proc have no size. One byte more
  // than the size is requested, so that the end of a regular file is seen without growing the text.
  std::string text;
  Bytes got = 0;
  std::size_t room = static_cast<std::size_t>(std::min(std::max<Bytes>(size, kBlockBytes), max_bytes)) + 1;
  for (;;) {
    text.resize(room);
    const ssize_t n = ::read(fd, text.data() + got, room - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error failure = io_error("read", path, errno);
      throw failure.in(path, got);
    }
    if (n == 0) break;
    got += static_cast<Bytes>(n);
    if (got > max_bytes) throw too_large("more");
    if (got == room) room = static_cast<std::size_t>(std::min<Bytes>(room * 2, max_bytes + 1));
  }
  text.resize(static_cast<std::size_t>(got));
  if (S_ISREG(info.st_mode)) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return text;
}

void write_file_atomically(const std::string& path, std::string_view content) {
  struct stat target {};
  const bool exists = ::lstat(path.c_str(), &target) == 0;
  if (exists && !S_ISREG(target.st_mode)) {
    throw Error(ErrorKind::kInvalid, "the path exists and is not a regular file")
        .in(path)
        .expected("a regular file, or none")
        .found(kind_at(path))
        .fix("choose another name");
  }

  static std::atomic<unsigned> counter{0};
  std::string temporary;
  int fd = -1;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
    fd = open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0 && errno != EEXIST) throw io_error("create", temporary, errno);
  }
  if (fd < 0) throw io_error("create", temporary, EEXIST);

  try {
    write_all(fd, temporary, 0, std::as_bytes(std::span(content.data(), content.size())));
    if (exists && ::fchmod(fd, target.st_mode & 07777) != 0) throw io_error("chmod", temporary, errno);
    if (::fsync(fd) != 0) throw io_error("fsync", temporary, errno);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (::close(std::exchange(fd, -1)) != 0 && errno != EINTR) throw io_error("close", temporary, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw io_error("rename", path, errno);
  } catch (...) {
    close_quietly(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(directory_of(path));
}

void sync_directory(const std::string& path) {
  int fd = open_retrying(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) throw io_error("open", path, errno);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  close_quietly(fd);
  // EINVAL: the file system has no such operation (some network file systems); then there is nothing to wait
  // for.
  if (error != 0 && error != EINVAL) throw io_error("fsync", path, error);
}

void check_directory_of(const std::string& path) {
  const std::string directory = directory_of(path);
  struct stat info {};
  if (::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return;
  throw Error(ErrorKind::kNotFound, "no such directory")
      .in(directory)
      .expected("a directory to write " + path.substr(path.find_last_of('/') + 1) + " in")
      .found(kind_at(directory))
      .fix("make it first, or choose another place");
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

std::string_view kind_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return "nothing";
  if (S_ISREG(info.st_mode)) return "a file";
  return S_ISDIR(info.st_mode) ? "a directory" : "a link, device, pipe or socket";
}

Error name_is_taken(const std::string& path, std::string_view fix) {
  const std::string_view kind = kind_at(path);
  const bool is_ours = kind == "a file" || kind == "a directory";  // not /dev/full
  return Error(ErrorKind::kInvalid, "exists already")
      .in(path)
      .expected("a name that nothing has")
      .found(kind)
      .fix(!fix.empty() ? fix
           : is_ours    ? "remove it or choose another name"
                        : "choose another name");
}

void rename_no_replace(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  int error = errno;
  if (error == EINVAL || error == ENOSYS) {
    // The file system does not know the flag. Checking first leaves a window in which another process can
    // create `to`; rename still refuses to replace a directory that is not empty.
    struct stat info {};
    if (::lstat(to.c_str(), &info) == 0) throw name_is_taken(to);
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    error = errno;
  }
  if (error == EEXIST || error == ENOTEMPTY) throw name_is_taken(to);
  Error failure = io_error("rename", from, error);
  throw failure.expected("a new name: " + to);
}

Bytes free_space(const std::string& path) {
  struct statvfs info {};
  int result = 0;
  do {
    result = ::statvfs(path.c_str(), &info);
  } while (result != 0 && errno == EINTR);
  if (result != 0) throw io_error("statvfs", path, errno);
  return static_cast<Bytes>(info.f_bavail) * static_cast<Bytes>(info.f_frsize);
}

// ---- FileLock

FileLock FileLock::acquire(const std::string& path) {
  FileLock lock;
  lock.fd_ = open_retrying(path, O_RDWR | O_CREAT, 0666);
  if (lock.fd_ < 0) throw io_error("open", path, errno);
  int result = 0;
  do {
    result = ::flock(lock.fd_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    if (errno == EWOULDBLOCK) {
      throw Error(ErrorKind::kInvalid, "in use by another process")
          .in(path)
          .fix("wait for it to finish or stop it");
    }
    throw io_error("lock", path, errno);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    close_quietly(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileLock::~FileLock() { close_quietly(fd_); }

}  // namespace sluice
