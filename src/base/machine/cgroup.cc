#include "base/machine/cgroup.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace sluice {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool lists(const std::string& comma_separated, std::string_view name) {
  const std::vector<std::string> names = split(comma_separated, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string strip_slashes(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape_octal(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t k) {
      return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7';
    };
    if (text[i] == '\\' && digit(1) && digit(2) && digit(3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

struct Mount {
  CgroupVersion version;
  std::string group;      // the group that is mounted, "" for the root of the hierarchy
  std::string directory;  // where, `root` included
};

// proc(5): "36 35 98:0 /group /mount/point rw,… [optional fields] - cgroup2 source super,options".
std::vector<Mount> mounts_of(std::string_view controller, const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(line.substr(0, dash), ' ');
    const std::vector<std::string> right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.empty()) continue;
    const std::string& type = right[0];
    const bool v1 = type == "cgroup" && right.size() >= 3 && lists(right[2], controller);
    if (!v1 && type != "cgroup2") continue;
    mounts.push_back({v1 ? CgroupVersion::kV1 : CgroupVersion::kV2, strip_slashes(unescape_octal(left[3])),
                      root + strip_slashes(unescape_octal(left[4]))});
  }
  if (mounts.empty()) {  // no mountinfo: the paths that systemd, Docker and Kubernetes use
    const std::string base = root + "/sys/fs/cgroup";
    mounts.push_back({CgroupVersion::kV1, "", base + "/" + std::string(controller)});
    mounts.push_back({CgroupVersion::kV2, "", base});
    mounts.push_back({CgroupVersion::kV2, "", base + "/unified"});
  }
  return mounts;
}

}  // namespace

std::vector<CgroupDirectory> cgroup_directories(std::string_view controller, const std::string& root_path) {
  const std::string root = strip_slashes(root_path);
  const std::vector<Mount> mounts = mounts_of(controller, root);

  std::vector<CgroupDirectory> directories;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/path" (v1) or "0::/path" (v2)
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !lists(controllers, controller)) continue;
    std::string group = strip_slashes(line.substr(second + 1));
    if (group.find("/..") != std::string::npos)
      group.clear();  // the group lies outside our namespace: only the namespace's root is visible

    for (const Mount& mount : mounts) {
      if ((mount.version == CgroupVersion::kV2) != v2) continue;
      // A container without its own namespace sees the host's path; the mount is the front part of that path.
      std::string below = group;
      if (!mount.group.empty() && (group == mount.group || group.starts_with(mount.group + "/"))) {
        below = group.substr(mount.group.size());
      }
      for (;;) {
        directories.push_back({mount.version, mount.directory + below});
        if (below.empty()) break;
        below.resize(below.find_last_of('/'));
      }
    }
  }
  return directories;
}

std::optional<std::string> read_system_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<unsigned> cgroup_cpu_limit(const std::string& root) {
  std::optional<unsigned> limit;
  const auto number = [](const std::string& text) {
    std::int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  for (const CgroupDirectory& group : cgroup_directories("cpu", root)) {
    std::int64_t quota_us = -1, period_us = -1;
    if (group.version == CgroupVersion::kV2) {
      const std::optional<std::string> line = read_system_line(group.path + "/cpu.max");  // "max 100000"
      if (!line) continue;
      const std::vector<std::string> fields = split(*line, ' ');
      if (fields.size() != 2) continue;
      quota_us = number(fields[0]);
      period_us = number(fields[1]);
    } else {
      const std::optional<std::string> quota =
          read_system_line(group.path + "/cpu.cfs_quota_us");  // -1: no quota
      const std::optional<std::string> period = read_system_line(group.path + "/cpu.cfs_period_us");
      if (!quota || !period) continue;
      quota_us = number(*quota);
      period_us = number(*period);
    }
    if (quota_us <= 0 || period_us <= 0) continue;
    // Rounded down: with one thread more than the quota allows, the kernel stops all threads in every period.
    const std::int64_t cpus = std::clamp<std::int64_t>(quota_us / period_us, 1, 1 << 20);
    limit = std::min(limit.value_or(1u << 20), static_cast<unsigned>(cpus));
  }
  return limit;
}

}  // namespace sluice
