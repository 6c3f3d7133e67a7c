// A model directory as people have it: hub caches full of symbolic links, subdirectories, files nobody knows.
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
  std::int64_t modified_ns = 0;  // of the file a link leads to
  std::int64_t changed_ns = 0;
};

// Links are followed: what they lead to counts, not the links.
struct SourceDirectory {
  std::string path;
  std::vector<SourceFile> files;               // ascending by `relative`
  std::vector<std::string> empty_directories;  // ascending
  const SourceFile* find(std::string_view relative) const;
};

enum class Depth {
  kTop,   // regular files of the directory itself; everything else is passed over
  kTree,  // everything below it; what cannot be kept is an error
};

// Lists `path` without what `exclude` matches. A pattern without '/' is matched with the last component of a
// path, one with '/' with the whole relative path ('*' does not match '/'); a directory that matches is left
// out with all it holds. Error(kNotFound), (kIo), and for kTree (kInvalid) for sockets, devices, fifos, links
// that lead nowhere, directories that contain themselves through a link, and names that are not UTF-8.
SourceDirectory scan_directory(const std::string& path, const std::vector<std::string>& exclude, Depth depth);

// Error(kUsage) for a pattern that leaves nothing of the tree out, with some names that are there; otherwise
// as scan_directory for kTree.
void check_patterns(const std::string& path, const std::vector<std::string>& exclude);

// Whether `relative` may be joined to a directory without leaving it: not empty, not absolute, no empty, "."
// or ".." component, no NUL, UTF-8.
bool is_safe_relative_path(std::string_view relative);

}  // namespace sluice::store
