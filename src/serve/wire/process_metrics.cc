#include "serve/wire/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

namespace sluice::serve {
namespace {

double start_seconds() {
  static const double start = [] {
    timespec now{}, ran{};
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &ran);
    const double boot = static_cast<double>(now.tv_sec - ran.tv_sec);
    unsigned long long ticks = 0;  // field 22, since boot
    if (const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen("/proc/self/stat", "re"),
                                                                   std::fclose}) {
      if (std::fscanf(
              file.get(),
              "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
              &ticks) != 1)
        ticks = 0;
    }
    return boot + static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }();
  return start;
}

double resident_bytes() {
  long pages = 0, resident = 0;
  if (const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen("/proc/self/statm", "re"),
                                                                 std::fclose})
    if (std::fscanf(file.get(), "%ld %ld", &pages, &resident) != 2) resident = 0;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::size_t count = 0;
  if (const std::unique_ptr<DIR, int (*)(DIR*)> folder{opendir("/proc/self/fd"), closedir})
    while (const dirent* entry = readdir(folder.get())) count += entry->d_name[0] != '.';
  return count == 0 ? 0 : static_cast<double>(count - 1);  // without the folder itself
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

void add_process_metrics(MetricSet& set) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  set.add("process_start_time_seconds", start_seconds());
  set.add("process_cpu_seconds_total", seconds(usage.ru_utime) + seconds(usage.ru_stime));
  set.add("process_resident_memory_bytes", resident_bytes());
  set.add("process_open_fds", open_descriptors());
}

}  // namespace sluice::serve
