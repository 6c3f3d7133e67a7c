#include "store/source/source_directory.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/setting.h"
#include "store/json_reader.h"
#include "store/source/directory_names.h"

namespace sluice::store {
namespace {

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

SourceFile described(const std::string& relative, const struct stat& info) {
  return {relative, static_cast<Bytes>(info.st_size), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

class Scan {
 public:
  Scan(SourceDirectory& out, const std::vector<std::string>& exclude, Depth depth)
      : out_(out), exclude_(exclude), depth_(depth), matched_(exclude.size()) {}

  // `relative` is empty for the directory itself.
  void directory(const std::string& relative, const struct stat& info) {
    const Identity identity{info.st_dev, info.st_ino};
    if (std::find(open_.begin(), open_.end(), identity) != open_.end()) {
      throw Error(ErrorKind::kInvalid, "a link leads back to a directory that contains it")
          .in(full(relative))
          .fix("remove the link or leave it out with " + Setting::kExclude + " '" + relative + "'");
    }
    open_.push_back(identity);
    bool empty = true;
    for (const std::string& name : names_in(full(relative))) {
      empty = false;
      entry(relative.empty() ? name : fmt::format("{}/{}", relative, name), name);
    }
    open_.pop_back();
    if (empty && !relative.empty()) out_.empty_directories.push_back(relative);
  }

  // The first pattern that has excluded nothing so far.
  const std::string* idle_pattern() const {
    const auto at = std::ranges::find(matched_, false);
    return at == matched_.end() ? nullptr : &exclude_[static_cast<std::size_t>(at - matched_.begin())];
  }

 private:
  std::string full(const std::string& relative) const {
    return relative.empty() ? out_.path : out_.path + "/" + relative;
  }

  bool excluded(const std::string& relative, const std::string& name) {
    bool any = false;
    for (std::size_t i = 0; i < exclude_.size(); ++i) {
      const char* const pattern = exclude_[i].c_str();
      const bool matches = exclude_[i].find('/') == std::string::npos
                               ? ::fnmatch(pattern, name.c_str(), 0) == 0
                               : ::fnmatch(pattern, relative.c_str(), FNM_PATHNAME) == 0;
      if (matches) matched_[i] = any = true;
    }
    return any;
  }

  void entry(const std::string& relative, const std::string& name) {
    if (excluded(relative, name)) return;
    const std::string path = full(relative);
    const auto fail = [&](std::string_view message, std::string_view found) {
      Error error(ErrorKind::kInvalid, message);
      if (!found.empty()) error.expected("a file, a directory or a link to one").found(found);
      throw error.in(path).fix("remove it or leave it out with " + Setting::kExclude + " '" + relative + "'");
    };
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      if (depth_ == Depth::kTop) return;
      if (errno == ENOENT) fail("a link that leads nowhere", "");
      if (errno == ELOOP) fail("a link that leads back to itself", "");
      throw io_error("stat", path, errno);
    }
    if (depth_ == Depth::kTop) {
      if (S_ISREG(info.st_mode) && is_utf8(name)) add(relative, info);
      return;
    }
    if (!is_utf8(name)) fail("a file name that is not UTF-8", "");
    if (S_ISREG(info.st_mode)) {
      add(relative, info);
    } else if (S_ISDIR(info.st_mode)) {
      directory(relative, info);
    } else {
      fail("not something a model directory can hold", S_ISFIFO(info.st_mode)   ? "a fifo"
                                                       : S_ISSOCK(info.st_mode) ? "a socket"
                                                                                : "a device");
    }
  }

  void add(const std::string& relative, const struct stat& info) {
    out_.files.push_back(described(relative, info));
  }

  SourceDirectory& out_;
  const std::vector<std::string>& exclude_;
  const Depth depth_;
  std::vector<bool> matched_;   // for each pattern
  std::vector<Identity> open_;  // the directories from the top down to the one being listed
};

std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

struct stat status_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return info;
  if (errno == ENOENT)
    throw Error(ErrorKind::kNotFound, "no such directory")
        .in(path)
        .expected("a Hugging Face model directory, a NAME.sluice store or a NAME.gguf file")
        .found("nothing")
        .fix("check the path");
  throw io_error("stat", path, errno);
}

}  // namespace

const SourceFile* SourceDirectory::find(std::string_view relative) const {
  const auto at =
      std::lower_bound(files.begin(), files.end(), relative,
                       [](const SourceFile& file, std::string_view name) { return file.relative < name; });
  return at != files.end() && at->relative == relative ? &*at : nullptr;
}

SourceDirectory scan_directory(const std::string& path, const std::vector<std::string>& exclude,
                               Depth depth) {
  SourceDirectory directory;
  directory.path = without_last_slashes(path);
  Scan(directory, exclude, depth).directory("", status_of(path));
  const auto by_name = [](const SourceFile& a, const SourceFile& b) { return a.relative < b.relative; };
  std::sort(directory.files.begin(), directory.files.end(), by_name);
  std::sort(directory.empty_directories.begin(), directory.empty_directories.end());
  return directory;
}

SourceDirectory list_files(const std::string& path, const std::vector<std::string>& names) {
  SourceDirectory directory;
  directory.path = without_last_slashes(path);
  for (const std::string& name : names) {
    const std::string file = directory.path + "/" + name;
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0)
      directory.files.push_back(described(name, info));
    else if (errno != ENOENT)
      throw io_error("stat", file, errno);
  }
  return directory;
}

void check_patterns(const std::string& path, const std::vector<std::string>& exclude) {
  if (exclude.empty()) return;
  SourceDirectory directory;
  directory.path = without_last_slashes(path);
  Scan scan(directory, exclude, Depth::kTree);
  scan.directory("", status_of(path));
  const std::string* const idle = scan.idle_pattern();
  if (idle == nullptr) return;
  constexpr std::size_t kMostNames = 6;
  std::string names;
  for (std::size_t i = 0; i < std::min(kMostNames, directory.files.size()); ++i)
    names += (i == 0 ? "" : ", ") + directory.files[i].relative;
  if (directory.files.size() > kMostNames) names += ", …";
  throw Error(ErrorKind::kUsage, "the pattern matches no file")
      .in(Setting::kExclude)
      .expected(names.empty() ? "no pattern: there are no other files"
                              : fmt::format("a glob of files of {}: {}", path, names))
      .found("\"" + *idle + "\"")
      .fix("correct the pattern, or leave it out");
}

bool is_safe_relative_path(std::string_view relative) {
  if (relative.find('\0') != std::string_view::npos || !is_utf8(relative)) return false;
  for (;;) {
    const std::size_t slash = relative.find('/');
    const std::string_view component = relative.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    relative.remove_prefix(slash + 1);
  }
}

}  // namespace sluice::store
