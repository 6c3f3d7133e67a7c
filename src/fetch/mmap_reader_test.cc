#include "fetch/mmap_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <thread>

#include "base/files/file.h"
#include "base/files/scratch_directory.h"

namespace sluice::fetch {
namespace {

// Reads a file of `size` bytes over and over; no read may fail.
void read_until(const std::atomic<bool>& done, const InputFile& file, Bytes size) {
  const auto reader = make_mmap_reader();
  std::vector<std::byte> buffer(size);
  std::vector<DiskCompletion> completions;
  while (!done) {
    reader->submit({&file, 0, size, buffer.data(), 1});
    completions.clear();
    reader->wait(1, completions);
    ASSERT_EQ(completions.at(0).error, 0);
  }
}

// A file that is cut while it is read gives short reads or EIO, and never ends the program, whatever
// readers of other threads do meanwhile.
TEST(MmapReader, AFileThatIsCutDuringAReadIsAnError) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer spends all but a moment of a read on its own tables: no cut falls into the copying";
#endif
  constexpr Bytes kSize = 4 * kMiB, kOther = 32 * kKiB;
  const auto handler = [] {
    struct sigaction action {};
    EXPECT_EQ(::sigaction(SIGBUS, nullptr, &action), 0);
    return action.sa_handler;
  };
  const auto before = handler();
  const sluice::testing::ScratchDirectory directory;
  const std::string path = directory.write("weights", std::string(kSize, 'w'));
  const InputFile file = InputFile::open(path);
  std::atomic<bool> done = false;
  std::atomic<int> reads = 0;
  std::jthread cutter([&] {
    for (int seen = 0; !done; seen = reads) {
      ASSERT_EQ(::truncate(path.c_str(), kSize), 0);
      while (!done && reads == seen) std::this_thread::yield();
      // Cuts in the middle of a read, however long a read takes here: 1 µs to 16 ms after its beginning.
      std::this_thread::sleep_for(std::chrono::microseconds(1 << seen % 15));
      ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    }
  });
  std::jthread neighbour([&] {
    const std::string other = directory.write("other", std::string(kOther, 'o'));
    read_until(done, InputFile::open(other), kOther);
  });
  const struct Finish {  // runs even if a check below fails
    std::atomic<bool>& done;
    ~Finish() { done = true; }
  } finish{done};
  const auto reader = make_mmap_reader();
  std::vector<std::byte> buffer(kSize);
  std::vector<DiskCompletion> completions;
  int errors = 0;
  while (reads < 100'000 && errors < 10) {
    ++reads;
    reader->submit({&file, 0, kSize, buffer.data(), 7});
    completions.clear();
    reader->wait(1, completions);
    ASSERT_EQ(completions.size(), 1u);
    if (completions[0].error == 0) continue;
    EXPECT_EQ(completions[0].error, EIO);
    EXPECT_EQ(completions[0].bytes, 0u);
    ++errors;
  }
  done = true;
  EXPECT_EQ(errors, 10) << "hardly ever cut in the middle of a read";
  neighbour.join();
  EXPECT_EQ(handler(), before) << "what was there is set back";
}

thread_local sigjmp_buf* volatile target = nullptr;  // as fault_target of mmap_reader.cc
std::atomic<int> handled = 0;

void on_other_fault(int) {
  ++handled;
  if (target != nullptr) siglongjmp(*target, 1);
}

bool other_is_set() {
  struct sigaction action {};
  EXPECT_EQ(::sigaction(SIGBUS, nullptr, &action), 0);
  return action.sa_handler == on_other_fault;
}

// Signals of the program that uses the reader: faults of its own maps, and signals that are sent to it.
TEST(MmapReader, WhatIsNoFaultOfACopyGoesToTheHandlerThatWasThere) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer runs handlers later, when nobody can jump out of them";
#endif
  struct sigaction action {
  }, before{};
  handled = 0;
  action.sa_handler = on_other_fault;
  action.sa_flags = SA_NODEFER;
  ASSERT_EQ(::sigaction(SIGBUS, &action, &before), 0);
  constexpr Bytes kSize = 4 * kMiB;
  const sluice::testing::ScratchDirectory directory;
  const InputFile file = InputFile::open(directory.write("weights", std::string(kSize, 'w')));
  const std::string cut = directory.write("cut", std::string(kBlockBytes, 'c'));
  const InputFile cut_file = InputFile::open(cut);
  void* const map = ::mmap(nullptr, kBlockBytes, PROT_READ, MAP_SHARED, cut_file.fd(), 0);
  ASSERT_NE(map, MAP_FAILED);
  ASSERT_EQ(::truncate(cut.c_str(), 0), 0);
  std::atomic<bool> done = false;
  {
    const std::jthread copier([&] { read_until(done, file, kSize); });
    volatile int seen = 0;  // while the reader's handler replaced it
    sigjmp_buf here;
    for (volatile int tries = 0; tries < 10'000'000 && seen < 20;) {
      tries = tries + 1;
      if (other_is_set()) continue;
      seen = seen + 1;
      if (seen % 2 == 0) {
        ::raise(SIGBUS);
      } else if (sigsetjmp(here, 1) == 0) {
        target = &here;
        [[maybe_unused]] const char byte = *static_cast<const volatile char*>(map);
      }
      target = nullptr;
      EXPECT_EQ(handled, seen);
    }
    EXPECT_EQ(seen, 20) << "the reader hardly ever copied";
    for (int tries = 0; tries < 10'000'000 && other_is_set();) ++tries;
    std::signal(SIGBUS, SIG_IGN);
    done = true;
  }
  EXPECT_EQ(std::signal(SIGBUS, SIG_IGN), SIG_IGN) << "what was set meanwhile stays";
  ASSERT_EQ(::sigaction(SIGBUS, &before, nullptr), 0);
  ::munmap(map, kBlockBytes);
}

}  // namespace
}  // namespace sluice::fetch
