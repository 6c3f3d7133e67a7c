// A model directory as people have it: hub caches full of symbolic links, subdirectories, unknown files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sluice::store {

struct SourceFile {
  std::string relative;  // "original/params.json"; UTF-8, components neither "", "." nor ".."
  Bytes size = 0;
  std::int64_t modified_ns = 0;  // for a link, of the file it leads to
  std::int64_t changed_ns = 0;
};

// Links are followed: their targets count, not the links.
struct SourceDirectory {
  std::string path;
  std::vector<SourceFile> files;               // ascending by `relative`
  std::vector<std::string> empty_directories;  // ascending
  const SourceFile* find(std::string_view relative) const;
};

enum class Depth {
  kTop,   // regular files of the directory itself; ignores everything else
  kTree,  // everything below it; entries that cannot be kept are errors
};

// Lists `path` without entries that `exclude` matches. A pattern without '/' is matched with the last
// component of a path, a pattern with '/' with the whole relative path ('*' does not match '/'); a directory
// that matches is left out with its content. Error(kNotFound), (kIo); for kTree (kInvalid) for sockets,
// devices, fifos, links that lead nowhere, directories that contain themselves through a link, and names that
// are not UTF-8.
SourceDirectory scan_directory(const std::string& path, const std::vector<std::string>& exclude, Depth depth);

// These files of a directory alone, those that are there; `names` are relative and ascending. Error(kIo).
SourceDirectory list_files(const std::string& path, const std::vector<std::string>& names);

// Error(kUsage) for a pattern that excludes nothing in the tree; it lists some existing names. Otherwise
// errors as scan_directory for kTree.
void check_patterns(const std::string& path, const std::vector<std::string>& exclude);

// Whether `relative` may be joined to a directory without leaving it: not empty, not absolute, no empty, "."
// or ".." component, no NUL, UTF-8.
bool is_safe_relative_path(std::string_view relative);

}  // namespace sluice::store
