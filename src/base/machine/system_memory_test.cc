#include "base/machine/system_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/machine/cgroup.h"

#if defined(__has_feature)
#define SLUICE_HAS_FEATURE(x) __has_feature(x)
#else
#define SLUICE_HAS_FEATURE(x) 0
#endif

namespace sluice {
namespace {

using testing::ScratchDirectory;

constexpr const char* kMeminfo =
    "MemTotal:       33554432 kB\n"
    "MemFree:         1048576 kB\n"
    "MemAvailable:   16777216 kB\n"
    "Cached:          2097152 kB\n"
    "SwapTotal:       4194304 kB\n"
    "HugePages_Total:       0\n";

class FakeRoot : public ScratchDirectory {
 public:
  FakeRoot() { write("proc/meminfo", kMeminfo); }
  MemoryLimits limits() const { return read_memory_limits(path()); }
};

TEST(MemoryLimits, OfTheMachineAlone) {
  const FakeRoot root;
  const MemoryLimits limits = root.limits();
  EXPECT_EQ(limits.machine_total, 32 * kGiB);
  EXPECT_EQ(limits.machine_available, 16 * kGiB);
  EXPECT_EQ(limits.swap_total, 4 * kGiB);
  EXPECT_FALSE(limits.cgroup_limit);
  EXPECT_EQ(free_memory(limits), 16 * kGiB);
}

TEST(MemoryLimits, OldKernelsWithoutMemAvailable) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: 100 kB\nMemFree: 10 kB\nCached: 20 kB\n");
  EXPECT_EQ(root.limits().machine_available, 30 * kKiB);
}

TEST(MemoryLimits, WithoutMeminfoIsAnError) {
  const ScratchDirectory root;
  EXPECT_THROW(read_memory_limits(root.path()), Error);
}

TEST(MemoryLimits, V2SmallestOnTheWayUpWins) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a.slice/b.service\n");
  root.write("sys/fs/cgroup/a.slice/memory.max", "4294967296\n");
  root.write("sys/fs/cgroup/a.slice/memory.current", "3221225472\n");
  root.write("sys/fs/cgroup/a.slice/memory.stat",
             "anon 5\nfile 7\ninactive_file 1073741824\nactive_file 9\n");
  root.write("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  root.write("sys/fs/cgroup/a.slice/b.service/memory.current", "1000\n");
  const MemoryLimits limits = root.limits();
  EXPECT_EQ(limits.cgroup_limit, 4 * kGiB);
  EXPECT_EQ(limits.cgroup_used, 2 * kGiB) << "inactive page cache does not count";
  EXPECT_EQ(free_memory(limits), 2 * kGiB);
}

TEST(MemoryLimits, V2HighCountsAsALimit) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a\n");
  root.write("sys/fs/cgroup/a/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/memory.high", "1073741824\n");
  EXPECT_EQ(root.limits().cgroup_limit, kGiB);
}

TEST(MemoryLimits, AFullerGroupAboveTheSmallestLimitBoundsWhatIsFree) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/memory.max", std::to_string(8 * kGiB));
  root.write("sys/fs/cgroup/a/memory.current", std::to_string(7 * kGiB));
  root.write("sys/fs/cgroup/a/b/memory.max", std::to_string(4 * kGiB));
  root.write("sys/fs/cgroup/a/b/memory.current", std::to_string(kGiB));
  const MemoryLimits limits = root.limits();
  EXPECT_EQ(limits.cgroup_limit, 4 * kGiB);
  EXPECT_EQ(limits.cgroup_used, kGiB);
  EXPECT_EQ(free_memory(limits), kGiB);
}

TEST(MemoryLimits, V2ContainerThatSeesItsGroupAsTheRoot) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("proc/self/mountinfo",
             "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
             "30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n");
  root.write("sys/fs/cgroup/memory.max", "2147483648\n");
  root.write("sys/fs/cgroup/memory.current", "1073741824\n");
  EXPECT_EQ(free_memory(root.limits()), kGiB);
}

TEST(MemoryLimits, V1TakesTheMemoryControllerAndIgnoresTheHugeNumber) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/wrong\n4:memory:/group/child\n0::/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/group/memory.limit_in_bytes", "3221225472\n");
  root.write("sys/fs/cgroup/memory/group/memory.usage_in_bytes", "2147483648\n");
  root.write("sys/fs/cgroup/memory/group/memory.stat", "inactive_file 1\ntotal_inactive_file 1073741824\n");
  root.write("sys/fs/cgroup/memory/group/child/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryLimits limits = root.limits();
  EXPECT_EQ(limits.cgroup_limit, 3 * kGiB);
  EXPECT_EQ(limits.cgroup_used, kGiB);
}

TEST(MemoryLimits, V1WithoutAnyLimitHasNone) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "4:memory:/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  EXPECT_FALSE(root.limits().cgroup_limit);
}

TEST(MemoryLimits, V1ContainerIsShownThePathOfTheHost) {
  // Docker without a cgroup namespace: the group is mounted at the controller's directory.
  const FakeRoot root;
  root.write("proc/self/cgroup", "4:memory:/docker/0123/inner\n");
  root.write("proc/self/mountinfo",
             "36 35 0:31 /docker/0123 /sys/fs/cgroup/memory ro,nosuid master:11 - cgroup cgroup rw,memory\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  root.write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(root.limits().cgroup_limit, kGiB / 2);
}

TEST(MemoryLimits, APathThatDoesNotExistHereFallsBackToTheMountedRoot) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "4:memory:/kubepods/pod/0123\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(root.limits().cgroup_limit, kGiB);
  root.write("proc/self/cgroup", "4:memory:/../../other\n");
  EXPECT_EQ(root.limits().cgroup_limit, kGiB);
}

TEST(MemoryLimits, HybridHierarchyOnAnUnusualMountPoint) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "4:memory:/x\n0::/y\n");
  root.write("proc/self/mountinfo",
             "36 35 0:31 / /cg\\040roups/mem rw - cgroup cgroup rw,memory\n"
             "37 35 0:32 / /cg\\040roups/two rw - cgroup2 cgroup2 rw\n");
  root.write("cg roups/mem/x/memory.limit_in_bytes", "2000000\n");
  root.write("cg roups/two/y/memory.max", "1000000\n");
  EXPECT_EQ(root.limits().cgroup_limit, 1'000'000u);
  root.write("cg roups/mem/x/memory.limit_in_bytes", "500000\n");
  EXPECT_EQ(root.limits().cgroup_limit, 500'000u);
}

TEST(MemoryLimits, UsageAboveTheLimitLeavesNothingAndDoesNotWrap) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/memory.max", "1000\n");
  root.write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(free_memory(root.limits()), 0u);
  root.write("sys/fs/cgroup/memory.stat", "inactive_file 5000\n");
  EXPECT_EQ(free_memory(root.limits()), 1000u);
}

TEST(MemoryLimits, GarbageIsNoLimit) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "\n:\n::\nnonsense\n0::/a\n");
  root.write("sys/fs/cgroup/a/memory.max", "lots\n");
  root.write("sys/fs/cgroup/a/memory.stat", "inactive_file\n");
  EXPECT_FALSE(root.limits().cgroup_limit);
}

TEST(MemoryLimits, OfThisMachineMakeSense) {
  const MemoryLimits limits = read_memory_limits();
  EXPECT_GT(limits.machine_total, 0u);
  EXPECT_LE(limits.machine_available, limits.machine_total);
  EXPECT_LE(free_memory(limits), limits.machine_available);
}

TEST(CgroupCpuLimit, V2IsRoundedDownAndAtLeastOne) {
  const ScratchDirectory root;
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_cpu_limit(root.path()));
  root.write("sys/fs/cgroup/a/b/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 3u);
  root.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 1u);
}

TEST(CgroupCpuLimit, V1ReadsQuotaAndPeriod) {
  const ScratchDirectory root;
  root.write("proc/self/cgroup", "3:cpu,cpuacct:/a\n");
  root.write("proc/self/mountinfo",
             "36 35 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cgroup_cpu_limit(root.path()));
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 2u);
}

TEST(CgroupCpuLimit, WithoutCgroupsThereIsNone) {
  const ScratchDirectory root;
  EXPECT_FALSE(cgroup_cpu_limit(root.path()));
}

TEST(ProcessMemory, GrowsWithTouchedPages) {
  const ProcessMemory before = read_process_memory();
  EXPECT_GT(before.resident, 0u);
  EXPECT_GE(before.peak_resident, before.resident / 2);
  EXPECT_GT(before.page_tables, 0u);
  std::vector<char> block(64 * kMiB, 1);
  const ProcessMemory after = read_process_memory();
  EXPECT_GT(after.peak_resident + kMiB, before.resident + 32 * kMiB);
  EXPECT_EQ(block[12345], 1);
}

TEST(Heap, CountsWhatIsAllocated) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    SLUICE_HAS_FEATURE(address_sanitizer) || SLUICE_HAS_FEATURE(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  const Bytes before = heap_in_use();
  std::vector<char> block(8 * kMiB, 1);
  EXPECT_GE(heap_in_use(), before + 8 * kMiB);
  EXPECT_EQ(block[1], 1);
  block = {};
  block.shrink_to_fit();
  EXPECT_LT(heap_in_use(), before + 8 * kMiB);
  trim_heap();
}

}  // namespace
}  // namespace sluice
