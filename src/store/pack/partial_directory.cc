#include "store/pack/partial_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "store/format.h"
#include "store/source/directory_names.h"

namespace sluice::store {
namespace {

namespace fs = std::filesystem;

bool is_taken(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw io_error("remove", path, error.value());
}

}  // namespace

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string parent_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void check_outside(const std::string& target, const std::string& source) {
  const std::string name = without_slashes(target);
  if (is_taken(name)) throw name_is_taken(name);
  check_directory_of(name);
  std::error_code error;
  const fs::path from = fs::canonical(source, error);
  if (error) throw io_error("open", source, error.value());
  const fs::path parent = fs::canonical(parent_directory(name), error);
  if (error) throw io_error("open", parent_directory(name), error.value());
  for (fs::path at = parent;; at = at.parent_path()) {
    if (at == from) {
      throw Error(ErrorKind::kInvalid, "the target would be inside its source")
          .in(name)
          .expected("a place that is not read while it is written")
          .found("one in " + source)
          .fix("choose a place outside of " + source);
    }
    if (at == at.parent_path()) return;
  }
}

void check_room(const std::string& directory, Bytes needed) {
  const Bytes free = free_space(directory);
  if (free >= needed) return;
  const ComparedBytes sizes = compared_bytes(needed, free);
  throw Error(ErrorKind::kIo, "not enough free space")
      .in(directory)
      .expected(sizes.expected)
      .found(sizes.found)
      .fix("free some space or choose another place");
}

PartialDirectory::PartialDirectory(const std::string& target,
                                   const std::function<bool(std::string_view name)>& is_ours)
    : target_(without_slashes(target)),
      path_(target_ + std::string(kPartialSuffix)),
      parent_(parent_directory(target_)) {
  // Another process may finish and rename the directory between our open and our lock: then our lock is on a
  // directory that is no longer called .partial, and we look again.
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (is_taken(target_)) throw name_is_taken(target_);
    if (::mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST) throw io_error("mkdir", path_, errno);
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd_ < 0) {
      if (errno == ENOENT) continue;
      throw io_error("open", path_, errno);
    }
    int result = 0;
    do {
      result = ::flock(fd_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
      const int error = errno;
      ::close(fd_);
      if (error != EWOULDBLOCK) throw io_error("flock", path_, error);
      throw Error(ErrorKind::kInvalid, "another process is writing this")
          .in(path_)
          .expected("a directory that no other process has locked")
          .found("a locked one")
          .fix("wait for it to finish or stop it");
    }
    struct stat locked {
    }, named{};
    if (::fstat(fd_, &locked) == 0 && ::lstat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev)
      break;
    ::close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0)
    throw Error(ErrorKind::kIo, "the directory keeps changing")
        .in(path_)
        .expected("a directory that stays while it is locked")
        .found("another one of this name, time and again")
        .fix("stop what else writes there, and try again");
  for (const std::string& name : names_in(path_)) {
    if (is_ours(name)) continue;
    ::close(fd_);
    throw Error(ErrorKind::kInvalid, "the unfinished directory holds another program's files")
        .in(path_)
        .expected("what an interrupted command of this kind leaves")
        .found(fmt::format("\"{}\", which is not ours", name))
        .fix("remove the directory or choose another name");
  }
}

PartialDirectory::~PartialDirectory() {
  if (fd_ >= 0) ::close(fd_);
}

bool PartialDirectory::has(std::string_view name) const { return is_taken(file(name)); }
bool PartialDirectory::empty() const { return names_in(path_).empty(); }

void PartialDirectory::clear(std::string_view first) {
  if (!first.empty() && is_taken(file(first))) {
    remove_tree(file(first));
    sync_directory(path_);
  }
  for (const std::string& name : names_in(path_)) remove_tree(file(name));
}

void PartialDirectory::discard() {
  clear();
  if (::rmdir(path_.c_str()) != 0) throw io_error("rmdir", path_, errno);
}

void PartialDirectory::remove_others(const std::vector<std::string>& names) {
  for (const std::string& name : names_in(path_)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) remove_tree(file(name));
  }
}

void PartialDirectory::publish(std::string_view last) {
  sync_directory(path_);
  if (!last.empty() && ::unlink(file(last).c_str()) != 0) throw io_error("unlink", file(last), errno);
  rename_no_replace(path_, target_);
  sync_directory(target_);
  sync_directory(parent_);
}

}  // namespace sluice::store
