#include "flags/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;

// Makes the new file `attempt` and removes it. Errors name `path`.
void try_to_make(const std::string& attempt, const std::string& path) {
  try {
    OutputFile::create(attempt);
  } catch (Error& error) {
    if (error.kind() == ErrorKind::kNotFound) error.fix("choose another place");  // its directory is there
    throw error.in(path);
  }
  ::unlink(attempt.c_str());
}

}  // namespace

void check_output_path(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorKind::kInvalid, "the path exists and is not a regular file")
        .in(path)
        .expected("a regular file, or none")
        .found(kind_at(path))
        .fix("choose another name");
  }
  check_directory_of(path);
  // Like write_file_atomically(), makes the new file beside the old one.
  try_to_make(path + ".tmp-" + std::to_string(::getpid()) + "-0", path);
}

void check_new_file(const std::string& path, std::string_view fix) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (fs::exists(status))
    throw name_is_taken(path, fs::is_regular_file(status) ? fix : "choose another name");
  check_directory_of(path);
  try_to_make(path, path);
}

void check_new_directory(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(name, ignored))) throw name_is_taken(name);
  check_directory_of(name);
  const std::string attempt = name + ".tmp-" + std::to_string(::getpid()) + "-0";
  if (::mkdir(attempt.c_str(), 0777) != 0) {
    Error error = io_error("mkdir", name, errno);
    if (error.kind() == ErrorKind::kNotFound) error.fix("choose another place");  // its directory is there
    throw error;
  }
  ::rmdir(attempt.c_str());
}

OutputDirectory::OutputDirectory(const std::string& path)
    : path_(fs::path(path).lexically_normal().string()) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  std::error_code code;
  for (fs::path at = path_; !at.empty() && !fs::exists(fs::symlink_status(at, code)); at = at.parent_path())
    ++made_;
  fs::create_directories(path_, code);
  try {
    if (code) throw io_error("mkdir", path, code.value());
    try_to_make(path_ + "/.tmp-" + std::to_string(::getpid()) + "-0", path);
  } catch (...) {
    remove_made();
    throw;
  }
}

OutputDirectory::~OutputDirectory() { remove_made(); }

void OutputDirectory::remove_made() const {
  fs::path at = path_;
  for (std::size_t i = 0; i < made_; ++i, at = at.parent_path())
    if (::rmdir(at.c_str()) != 0 && errno != ENOENT) return;  // not empty
}

}  // namespace sluice::app
