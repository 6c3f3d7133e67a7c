// Files as the rest of the program uses them: opened once, read at an offset, written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/files/write_back.h"

namespace sluice {

class Error;

enum class ReadMode {
  kBuffered,  // through the page cache
  kDirect,    // O_DIRECT; Error(kUnsupported) naming Setting::kIo buffered when the file system refuses
};

// An open file for reading. Move-only; closes on destruction. Thread-safe: reads carry their offset.
class InputFile {
 public:
  InputFile() = default;
  static InputFile open(const std::string& path, ReadMode mode = ReadMode::kBuffered);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  int fd() const { return fd_; }
  Bytes size() const { return size_; }  // when the file was opened
  const std::string& path() const { return path_; }
  ReadMode mode() const { return mode_; }
  // The alignment that kDirect demands of offset, length and address (from STATX_DIOALIGN; 4096 where the
  // kernel does not say); 1 when buffered.
  Bytes alignment() const { return alignment_; }

  // Fills `out` from `offset`; retries EINTR and short reads. Error(kCorrupt) "file ends" when the file is
  // shorter.
  void read_at(Bytes offset, std::span<std::byte> out) const;
  // Starts reading the whole file into the page cache, in requests as large as the disk takes. Best effort.
  void expect_all() const;
  // Drops this range of the file from the page cache, so that buffered reads leave no uncounted memory
  // behind. Best effort.
  void drop_cache(Bytes offset, Bytes length) const;

 private:
  int fd_ = -1;
  Bytes size_ = 0;
  Bytes alignment_ = 1;
  ReadMode mode_ = ReadMode::kBuffered;
  std::string path_;
};

// A file that is written from start to end (or at given offsets). Every failure (a full disk included) is an
// Error that names path and offset. Not thread-safe. Call close() to see the last errors; the destructor only
// closes.
class OutputFile {
 public:
  OutputFile() = default;
  static OutputFile create(const std::string& path);                       // fails if it exists
  static OutputFile open_for_append(const std::string& path, Bytes keep);  // truncates to `keep` bytes first
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  void write(std::span<const std::byte> data);  // at the end
  void write(std::string_view text);
  void pad_to(Bytes multiple);  // zero bytes
  void cut(Bytes keep);         // truncates to `keep` bytes, at most size(); writing goes on there
  void sync();                  // fdatasync, then drops the written pages from the cache
  void close();                 // sync and close
  Bytes size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  Bytes size_ = 0;
  WriteBack write_back_;
  std::string path_;
};

// Reads a whole small file. Error(kInvalid) if it is larger than `max_bytes`. Drops the pages read from the
// page cache.
std::string read_text_file(const std::string& path, Bytes max_bytes);

// Writes `path` so that the file appears whole or not at all: temporary name in the same directory, fsync,
// rename. Replaces an existing regular file.
void write_file_atomically(const std::string& path, std::string_view content);

void sync_directory(const std::string& path);  // fsync of the directory itself
// Error(kNotFound) naming the directory unless `path`, a file or directory to be made, has one to stand in.
void check_directory_of(const std::string& path);
// Whether something has this name, links followed; false also where it cannot be seen.
bool is_there(const std::string& path);
// What has this name, links not followed: "a file", "a directory", "a link, device, pipe or socket", or
// "nothing".
std::string_view kind_at(const std::string& path);
// The Error(kInvalid) about a name that a result was to have, and that something has. Without a `fix` the
// usual one: to remove a file or directory that is there, or another name.
Error name_is_taken(const std::string& path, std::string_view fix = "");
// Renames; fails with Error(kInvalid) if `to` exists (RENAME_NOREPLACE).
void rename_no_replace(const std::string& from, const std::string& to);
Bytes free_space(const std::string& path);  // bytes an unprivileged writer may still use

// Exclusive advisory lock on a file (created if missing); released on destruction or process end.
class FileLock {
 public:
  static FileLock acquire(
      const std::string& path);  // Error(kInvalid) "in use by another process" at once if held
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  FileLock() = default;
  int fd_ = -1;
};

}  // namespace sluice
