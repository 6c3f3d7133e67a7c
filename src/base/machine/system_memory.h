// What the machine and the process's memory cgroup (v1 and v2) report about memory.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"

namespace sluice {

struct MemoryLimits {
  Bytes machine_total = 0;
  Bytes machine_available = 0;        // MemAvailable
  std::optional<Bytes> cgroup_limit;  // smallest limit on the path from our cgroup to the root, if any
  Bytes cgroup_used = 0;              // by that cgroup, less what it can drop at once (inactive_file)
  Bytes swap_total = 0;
  // Smallest (limit − used) on that path: a group above ours can be fuller than the one with the smallest
  // limit.
  std::optional<Bytes> cgroup_free;
};

// In tests `root` replaces "/" (a directory with proc/… and sys/fs/cgroup/… files). Error(kIo or kNotFound)
// without a readable proc/meminfo; a missing cgroup file means no limit from it.
MemoryLimits read_memory_limits(const std::string& root = "/");

// Memory that a new program can use: the smallest of machine_available, cgroup_limit − cgroup_used and
// cgroup_free.
Bytes free_memory(const MemoryLimits& limits);

struct ProcessMemory {
  Bytes resident = 0;       // VmRSS: anonymous, file-backed (code, libraries) and shared
  Bytes peak_resident = 0;  // VmHWM
  Bytes files = 0;          // RssFile: the part of `resident` that maps files: code, libraries, constants
  Bytes page_tables = 0;    // VmPTE
};
ProcessMemory read_process_memory();

// Makes all of the program's own code and constants resident. Otherwise their pages come one by one at first
// use, and the start could not say how much they will take. Libraries stay as they are.
void touch_program();

// Bytes of the heap in use (mallinfo2), and returning unused heap to the system.
Bytes heap_in_use();
void trim_heap();
// From now on a large block of the heap is the system's again as soon as it is freed. By default the heap
// keeps blocks of up to 32 MiB once such a block was freed.
void return_large_blocks();

}  // namespace sluice
