#include "base/machine/system_memory.h"

#include <link.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/machine/cgroup.h"

namespace sluice {
namespace {

// Lines "Name:   123 kB" of /proc files as bytes.
std::map<std::string, Bytes> read_kb_fields(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw io_error("open", path, errno != 0 ? errno : EIO);
  std::map<std::string, Bytes> fields;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t digit =
        line.find_first_of("0123456789", colon == std::string::npos ? line.size() : colon);
    if (digit == std::string::npos || !line.ends_with(" kB")) continue;
    Bytes kib = 0;
    std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    fields[line.substr(0, colon)] = kib * kKiB;
  }
  return fields;
}

Bytes field(const std::map<std::string, Bytes>& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? 0 : found->second;
}

// Reads a number of bytes; empty for "max", for garbage and for a missing file.
std::optional<Bytes> read_bytes(const std::string& path) {
  const std::optional<std::string> line = read_system_line(path);
  if (!line) return std::nullopt;
  Bytes value = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), value);
  if (error != std::errc() || end == line->data()) return std::nullopt;
  // v1 writes "no limit" as 2^63 less a page (of any size); no machine has an EiB.
  if (value >= Bytes{1} << 60) return std::nullopt;
  return value;
}

// Value of `name` in a memory.stat file.
Bytes read_stat(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  Bytes value = 0;
  while (file >> key >> value) {
    if (key == name) return value;
  }
  return 0;
}

std::optional<Bytes> smaller(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

Bytes less(Bytes a, Bytes b) { return a > b ? a - b : 0; }

}  // namespace

MemoryLimits read_memory_limits(const std::string& root) {
  const std::map<std::string, Bytes> meminfo = read_kb_fields(root + "/proc/meminfo");
  MemoryLimits limits;
  limits.machine_total = field(meminfo, "MemTotal");
  limits.machine_available = meminfo.contains("MemAvailable")
                                 ? field(meminfo, "MemAvailable")
                                 : field(meminfo, "MemFree") + field(meminfo, "Cached");  // before Linux 3.14
  limits.swap_total = field(meminfo, "SwapTotal");

  for (const CgroupDirectory& group : cgroup_directories("memory", root)) {
    std::optional<Bytes> limit;
    Bytes used = 0;
    if (group.version == CgroupVersion::kV2) {
      // Above memory.high the kernel throttles the group to a crawl, so memory.high limits as much as
      // memory.max.
      limit = smaller(read_bytes(group.path + "/memory.max"), read_bytes(group.path + "/memory.high"));
      used = less(read_bytes(group.path + "/memory.current").value_or(0),
                  read_stat(group.path + "/memory.stat", "inactive_file"));
    } else {
      limit = read_bytes(group.path + "/memory.limit_in_bytes");
      used = less(read_bytes(group.path + "/memory.usage_in_bytes").value_or(0),
                  read_stat(group.path + "/memory.stat", "total_inactive_file"));
    }
    if (!limit) continue;
    limits.cgroup_free = smaller(limits.cgroup_free, less(*limit, used));
    if (!limits.cgroup_limit || *limit < *limits.cgroup_limit) {
      limits.cgroup_limit = limit;
      limits.cgroup_used = used;
    }
  }
  return limits;
}

Bytes free_memory(const MemoryLimits& limits) {
  Bytes free = limits.machine_available;
  if (limits.cgroup_limit) free = std::min(free, less(*limits.cgroup_limit, limits.cgroup_used));
  if (limits.cgroup_free) free = std::min(free, *limits.cgroup_free);
  return free;
}

ProcessMemory read_process_memory() {
  const std::map<std::string, Bytes> status = read_kb_fields("/proc/self/status");
  return {field(status, "VmRSS"), field(status, "VmHWM"), field(status, "RssFile"), field(status, "VmPTE")};
}

// Reads a byte of each page, between variables, too: AddressSanitizer would take that for a mistake.
__attribute__((no_sanitize("address"))) static void touch_pages(std::uintptr_t begin, std::uintptr_t end,
                                                                std::uintptr_t page) {
  for (std::uintptr_t at = begin; at < end; at += page)
    static_cast<void>(*reinterpret_cast<const volatile char*>(at));
}

void touch_program() {
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void*) {
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0 || (segment.p_flags & PF_W) != 0)
            continue;
          const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
          touch_pages(begin, object->dlpi_addr + segment.p_vaddr + segment.p_filesz, page);
        }
        return 1;  // the program comes first; its libraries do not matter
      },
      nullptr);
}

Bytes heap_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<Bytes>(info.uordblks) + static_cast<Bytes>(info.hblkhd);
}

void trim_heap() { ::malloc_trim(0); }

void return_large_blocks() {
  constexpr int kLarge = 2 * 1024 * 1024;  // smaller ones would be slower than what is done with them
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
}

}  // namespace sluice
