// The control groups (v1 and v2) that this process is in, as files to read limits from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class CgroupVersion { kV1, kV2 };

struct CgroupDirectory {
  CgroupVersion version;
  std::string path;  // ends without a slash
};

// Directories that may hold files of `controller` ("memory", "cpu"): for each hierarchy from our own group up
// to the visible root. Some may not exist: in a container /proc/self/cgroup can show a path of the host. In
// tests `root` replaces "/" (a directory with proc/self/cgroup, and proc/self/mountinfo or the usual
// sys/fs/cgroup).
std::vector<CgroupDirectory> cgroup_directories(std::string_view controller, const std::string& root = "/");

// The smallest CPU quota on the way up in whole CPUs, rounded down, at least 1; empty without a quota.
std::optional<unsigned> cgroup_cpu_limit(const std::string& root = "/");

// First line of a small system file; empty if the file cannot be read.
std::optional<std::string> read_system_line(const std::string& path);

}  // namespace sluice
