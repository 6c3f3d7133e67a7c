#include "base/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"

namespace sluice::file_test {
namespace {

using testing::ScratchDirectory;

template <class Function>
Error caught(const Function& function) {
  try {
    function();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::kUsage, "nothing was thrown");
}

std::string random_text(std::mt19937_64& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string read(const InputFile& file, Bytes offset, std::size_t size) {
  std::string text(size, '?');
  file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
std::unique_ptr<std::byte, FreeDeleter> aligned(std::size_t bytes) {
  return std::unique_ptr<std::byte, FreeDeleter>(
      static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, round_up(bytes, kBlockBytes))));
}

// Opens a file for direct reads below the working directory, which is on a real file system more often than
// /tmp.
InputFile open_direct_or_skip(const std::string& path) {
  try {
    return InputFile::open(path, ReadMode::kDirect);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find("--io buffered"), std::string::npos) << e.what();
    return InputFile();
  }
}

TEST(InputFile, ReadsAnywhereInTheFile) {
  const ScratchDirectory dir;
  const std::string path = dir.write("f", "0123456789");
  const InputFile file = InputFile::open(path);
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.mode(), ReadMode::kBuffered);
  EXPECT_EQ(file.alignment(), 1u);
  EXPECT_EQ(read(file, 0, 10), "0123456789");
  EXPECT_EQ(read(file, 3, 4), "3456");
  EXPECT_EQ(read(file, 10, 0), "");
  EXPECT_EQ(read(file, 1000, 0), "");
  file.drop_cache(3, 4);
  file.drop_cache(0, 0);
}

TEST(InputFile, ReadingPastTheEndIsCorruption) {
  const ScratchDirectory dir;
  const InputFile file = InputFile::open(dir.write("f", "0123456789"));
  const Error e = caught([&] { read(file, 8, 3); });
  EXPECT_EQ(e.kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(e.offset(), 8u);
  EXPECT_NE(std::string(e.what()).find("file ends"), std::string::npos);
  EXPECT_EQ(caught([&] { read(file, 11, 1); }).kind(), ErrorKind::kCorrupt);
}

TEST(InputFile, AFileThatShrinksIsCorruption) {
  const ScratchDirectory dir;
  const std::string path = dir.write("f", "0123456789");
  const InputFile file = InputFile::open(path);
  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  EXPECT_EQ(read(file, 0, 4), "0123");
  EXPECT_EQ(caught([&] { read(file, 0, 10); }).kind(), ErrorKind::kCorrupt);
}

TEST(InputFile, MissingFilesAndDirectoriesAreNamed) {
  const ScratchDirectory dir;
  const Error missing = caught([&] { InputFile::open(dir.file("none")); });
  EXPECT_EQ(missing.kind(), ErrorKind::kNotFound);
  EXPECT_EQ(missing.where(), dir.file("none"));
  const Error directory = caught([&] { InputFile::open(dir.path()); });
  EXPECT_EQ(directory.kind(), ErrorKind::kInvalid);
  EXPECT_EQ(directory.found_text(), "a directory");
}

TEST(InputFile, APipeIsRefusedWithoutWaitingForAWriter) {
  const ScratchDirectory dir;
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(caught([&] { InputFile::open(dir.file("pipe")); }).kind(), ErrorKind::kInvalid);
}

TEST(InputFile, MovesAndClosesOnce) {
  const ScratchDirectory dir;
  InputFile a = InputFile::open(dir.write("a", "aa"));
  const int fd = a.fd();
  InputFile b = std::move(a);
  EXPECT_EQ(b.fd(), fd);
  EXPECT_EQ(a.fd(), -1);  // NOLINT(bugprone-use-after-move)
  b = InputFile::open(dir.write("b", "bb"));
  EXPECT_EQ(read(b, 0, 2), "bb");
  b = InputFile();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(InputFile, DirectReadsAnyRangeWithAnOddTail) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const ScratchDirectory dir(".");
  const std::string content = random_text(random, 700'001);
  const InputFile file = open_direct_or_skip(dir.write("f", content));
  if (file.fd() < 0) GTEST_SKIP() << "no direct I/O here";
  EXPECT_GE(file.alignment(), 1u);
  EXPECT_LE(file.alignment(), kBlockBytes);
  EXPECT_EQ(read(file, 0, content.size()), content);
  EXPECT_EQ(read(file, content.size() - 1, 1), content.substr(content.size() - 1));
  for (int i = 0; i < 50; ++i) {
    const std::size_t offset = random() % content.size();
    const std::size_t size = random() % (content.size() - offset + 1);
    ASSERT_EQ(read(file, offset, size), content.substr(offset, size)) << offset << " " << size;
  }
  // Aligned buffer, offset and length: the read goes straight into the caller's memory.
  const auto buffer = aligned(2 * kBlockBytes);
  file.read_at(kBlockBytes, {buffer.get(), 2 * kBlockBytes});
  EXPECT_EQ(std::string(reinterpret_cast<char*>(buffer.get()), 2 * kBlockBytes),
            content.substr(kBlockBytes, 2 * kBlockBytes));
  EXPECT_EQ(caught([&] { read(file, content.size() - 10, 11); }).kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(caught([&] {
              file.read_at(round_down(content.size(), kBlockBytes), {buffer.get(), kBlockBytes});
            }).kind(),
            ErrorKind::kCorrupt);
}

TEST(InputFile, WithoutDirectIoTheErrorNamesTheWayOut) {
  // procfs has never supported direct I/O.
  const Error e = caught([] { InputFile::open("/proc/self/status", ReadMode::kDirect); });
  EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
  EXPECT_NE(std::string(e.what()).find("use --io buffered"), std::string::npos);
}

TEST(InputFile, DirectOnTmpfsIsRefusedOrRight) {  // tmpfs supports it since Linux 6.6
  struct stat info {};
  if (::stat("/dev/shm", &info) != 0 || ::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const ScratchDirectory dir("/dev/shm");
  const std::string content(10'001, 'x');
  const InputFile file = open_direct_or_skip(dir.write("f", content));
  if (file.fd() < 0) return;  // refused, checked above
  EXPECT_EQ(read(file, 5, 9'996), content.substr(5));
}

TEST(OutputFile, WritesInOrderPadsAndCloses) {
  const ScratchDirectory dir;
  OutputFile file = OutputFile::create(dir.file("f"));
  file.write("abc");
  file.pad_to(8);
  EXPECT_EQ(file.size(), 8u);
  file.pad_to(8);
  EXPECT_EQ(file.size(), 8u);
  const std::byte one{1};
  file.write(std::span(&one, 1));
  file.pad_to(10'000);
  file.close();
  file.close();
  const std::string text = read_text_file(dir.file("f"), kMiB);
  EXPECT_EQ(text, std::string("abc\0\0\0\0\0\1", 9) + std::string(9'991, '\0'));
}

TEST(OutputFile, DoesNotReplaceAFile) {
  const ScratchDirectory dir;
  const std::string path = dir.write("f", "old");
  EXPECT_EQ(caught([&] { OutputFile::create(path); }).kind(), ErrorKind::kInvalid);
  EXPECT_EQ(read_text_file(path, 100), "old");
  EXPECT_EQ(caught([&] { OutputFile::create(dir.file("no/f")); }).kind(), ErrorKind::kNotFound);
}

TEST(OutputFile, AppendKeepsWhatIsAskedFor) {
  const ScratchDirectory dir;
  const std::string path = dir.write("f", "0123456789");
  OutputFile file = OutputFile::open_for_append(path, 4);
  EXPECT_EQ(file.size(), 4u);
  file.write("xy");
  file.close();
  EXPECT_EQ(read_text_file(path, 100), "0123xy");
  const Error e = caught([&] { OutputFile::open_for_append(path, 7); });
  EXPECT_EQ(e.kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(read_text_file(path, 100), "0123xy");
}

TEST(OutputFile, AFullDiskIsAnErrorWithPathAndOffset) {
  OutputFile file = OutputFile::open_for_append("/dev/full", 0);
  const Error e = caught([&] { file.write("x"); });
  EXPECT_EQ(e.kind(), ErrorKind::kIo);
  EXPECT_EQ(e.where(), "/dev/full");
  EXPECT_EQ(e.offset(), 0u);
  EXPECT_NE(std::string(e.what()).find("No space left"), std::string::npos);
  EXPECT_EQ(file.size(), 0u);
}

TEST(ReadTextFile, ReadsFilesOfUnknownSize) {
  EXPECT_NE(read_text_file("/proc/self/status", kMiB).find("VmRSS"), std::string::npos);
}

TEST(ReadTextFile, TooLargeIsInvalidAndExactlyAsLargeIsNot) {
  const ScratchDirectory dir;
  const std::string path = dir.write("f", std::string(5000, 'x'));
  EXPECT_EQ(read_text_file(path, 5000).size(), 5000u);
  const Error e = caught([&] { read_text_file(path, 4999); });
  EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
  EXPECT_EQ(e.found_text(), "5000");
  EXPECT_EQ(caught([] { read_text_file("/dev/zero", 100'000); }).kind(), ErrorKind::kInvalid);
  EXPECT_EQ(read_text_file(dir.write("empty", ""), 0), "");
  EXPECT_EQ(read_text_file(path, ~Bytes{0}).size(), 5000u);
}

TEST(ReadTextFile, DirectoriesAndMissingFilesAreNamed) {
  const ScratchDirectory dir;
  EXPECT_EQ(caught([&] { read_text_file(dir.path(), 100); }).kind(), ErrorKind::kInvalid);
  EXPECT_EQ(caught([&] { read_text_file(dir.file("none"), 100); }).kind(), ErrorKind::kNotFound);
}

std::size_t entries(const std::string& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(WriteFileAtomically, CreatesAndReplaces) {
  const ScratchDirectory dir;
  write_file_atomically(dir.file("f"), "one");
  EXPECT_EQ(read_text_file(dir.file("f"), 100), "one");
  ASSERT_EQ(::chmod(dir.file("f").c_str(), 0640), 0);
  write_file_atomically(dir.file("f"), "two");
  EXPECT_EQ(read_text_file(dir.file("f"), 100), "two");
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(entries(dir.path()), 1u) << "temporary files were left";
}

TEST(WriteFileAtomically, LeavesDirectoriesAndLinksAlone) {
  const ScratchDirectory dir;
  std::filesystem::create_directory(dir.file("d"));
  EXPECT_EQ(caught([&] { write_file_atomically(dir.file("d"), "x"); }).kind(), ErrorKind::kInvalid);
  dir.write("target", "old");
  std::filesystem::create_symlink(dir.file("target"), dir.file("link"));
  EXPECT_EQ(caught([&] { write_file_atomically(dir.file("link"), "x"); }).kind(), ErrorKind::kInvalid);
  EXPECT_EQ(read_text_file(dir.file("target"), 100), "old");
  EXPECT_EQ(caught([&] { write_file_atomically(dir.file("no/f"), "x"); }).kind(), ErrorKind::kNotFound);
  EXPECT_EQ(entries(dir.path()), 3u);
}

// Bytes of the file that wait for the disk; empty where the system cannot tell (before Linux 6.5).
std::optional<Bytes> waiting_for_disk(const std::string& path) {
  constexpr long kCachestat = 451;
  const struct { std::uint64_t offset, length; } whole = {0, 0};
  struct {
    std::uint64_t cache, dirty, writeback, evicted, recently_evicted;
  } pages{};
  const int fd = ::open(path.c_str(), O_RDONLY);
  const bool told = ::syscall(kCachestat, fd, &whole, &pages, 0) == 0;
  ::close(fd);
  if (!told) return std::nullopt;
  return (pages.dirty + pages.writeback) * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

// A sync cannot be interrupted, and must not have much to wait for.
TEST(OutputFile, FewBytesWaitForTheDisk) {
  const ScratchDirectory directory;
  const std::string path = directory.file("f"), piece(kMiB, 'x');
  OutputFile file = OutputFile::create(path);
  Bytes most = 0;
  for (int i = 0; i < 96; ++i) {
    file.write(piece);
    const std::optional<Bytes> waiting = waiting_for_disk(path);
    if (!waiting) GTEST_SKIP() << "the system does not tell what waits";
    most = std::max(most, *waiting);
  }
  if (most == 0) GTEST_SKIP() << "a file system without a disk";
  RecordProperty("most_mib", static_cast<int>(most / kMiB));
  EXPECT_LE(most, 3 * WriteBack::kStep);  // twice, and what the file system did not take at once
}

TEST(RenameNoReplace, MovesFilesAndDirectoriesButNeverOntoAnother) {
  const ScratchDirectory dir;
  dir.write("a", "a");
  rename_no_replace(dir.file("a"), dir.file("b"));
  EXPECT_EQ(read_text_file(dir.file("b"), 10), "a");
  dir.write("c", "c");
  const Error e = caught([&] { rename_no_replace(dir.file("c"), dir.file("b")); });
  EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
  EXPECT_EQ(e.where(), dir.file("b"));
  EXPECT_EQ(read_text_file(dir.file("b"), 10), "a");
  std::filesystem::create_directory(dir.file("d1"));
  std::filesystem::create_directory(dir.file("d2"));
  EXPECT_EQ(caught([&] { rename_no_replace(dir.file("d1"), dir.file("d2")); }).kind(), ErrorKind::kInvalid);
  rename_no_replace(dir.file("d1"), dir.file("d3"));
  EXPECT_TRUE(std::filesystem::is_directory(dir.file("d3")));
  EXPECT_EQ(caught([&] { rename_no_replace(dir.file("none"), dir.file("x")); }).kind(), ErrorKind::kNotFound);
}

TEST(SyncDirectory, WorksOnDirectoriesOnly) {
  const ScratchDirectory dir;
  sync_directory(dir.path());
  EXPECT_EQ(caught([&] { sync_directory(dir.file("none")); }).kind(), ErrorKind::kNotFound);
}

TEST(FreeSpace, IsKnownForAnExistingPath) {
  const ScratchDirectory dir;
  EXPECT_GT(free_space(dir.path()), 0u);
  EXPECT_EQ(caught([&] { free_space(dir.file("none")); }).kind(), ErrorKind::kNotFound);
}

TEST(FileLock, ExcludesASecondHolderUntilReleased) {
  const ScratchDirectory dir;
  const std::string path = dir.file("lock");
  {
    FileLock first = FileLock::acquire(path);
    const Error e = caught([&] { FileLock::acquire(path); });
    EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
    EXPECT_EQ(e.message(), "in use by another process");
    FileLock moved = std::move(first);
    EXPECT_EQ(caught([&] { FileLock::acquire(path); }).kind(), ErrorKind::kInvalid);
  }
  FileLock again = FileLock::acquire(path);
}

TEST(FileLock, EndsWithTheProcess) {
  const ScratchDirectory dir;
  const std::string path = dir.file("lock");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FileLock lock = FileLock::acquire(path);
    ::_exit(0);  // without running destructors
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  FileLock::acquire(path);
}

}  // namespace
}  // namespace sluice::file_test
