#include "base/files/disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/fifo.h"
#include "base/files/disk_segments.h"
#include "base/files/scratch_directory.h"

namespace sluice {
namespace {

using testing::ScratchDirectory;

struct AlignedBuffer {
  explicit AlignedBuffer(std::size_t bytes)
      : data(static_cast<std::byte*>(
            std::aligned_alloc(kBlockBytes, round_up(std::max<std::size_t>(bytes, 1), kBlockBytes)))),
        size(bytes) {
    std::memset(data, 0xee, size);
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { std::free(data); }
  std::string text(std::size_t bytes) const {
    return std::string(reinterpret_cast<const char*>(data), bytes);
  }
  std::byte* data;
  std::size_t size;
};

std::string random_text(std::mt19937_64& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// ---- Progress of one segment

DiskSegment segment_of(Bytes length, Bytes needed, Bytes alignment) {
  DiskSegment segment;
  segment.length = length;
  segment.needed = needed;
  segment.alignment = alignment;
  return segment;
}

TEST(DiskSegment, AWholeReadIsDone) {
  DiskSegment s = segment_of(8192, 8192, 4096);
  int error = -1;
  EXPECT_EQ(advance(s, 8192, error), SegmentState::kDone);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(s.got, 8192u);
}

TEST(DiskSegment, TheRoundedTailOfTheFileIsDoneWhenItsInsideIsThere) {
  DiskSegment s = segment_of(8192, 5000, 4096);
  int error = -1;
  EXPECT_EQ(advance(s, 5000, error), SegmentState::kDone);
  EXPECT_EQ(s.got, 5000u);
}

TEST(DiskSegment, ShortReadsGoOnWhereTheyStoppedOrOnTheGrid) {
  int error = -1;
  DiskSegment buffered = segment_of(8192, 8192, 1);
  EXPECT_EQ(advance(buffered, 5000, error), SegmentState::kAgain);
  EXPECT_EQ(buffered.got, 5000u);
  EXPECT_EQ(advance(buffered, 3192, error), SegmentState::kDone);
  DiskSegment direct = segment_of(8192, 8192, 512);
  EXPECT_EQ(advance(direct, 5000, error), SegmentState::kAgain);
  EXPECT_EQ(direct.got, 4608u) << "the 392 bytes off the grid are read again";
  EXPECT_EQ(advance(direct, 3584, error), SegmentState::kDone);
  EXPECT_EQ(direct.got, 8192u);
}

TEST(DiskSegment, NoProgressInsideTheFileMeansThatItEnds) {
  int error = -1;
  DiskSegment buffered = segment_of(8192, 8192, 1);
  EXPECT_EQ(advance(buffered, 0, error), SegmentState::kFailed);
  EXPECT_EQ(error, ENODATA);
  DiskSegment direct = segment_of(8192, 8192, 4096);
  EXPECT_EQ(advance(direct, 4096, error), SegmentState::kAgain);
  EXPECT_EQ(advance(direct, 100, error), SegmentState::kFailed);
  EXPECT_EQ(error, ENODATA);
}

TEST(DiskSegment, InterruptedReadsAreRetriedButNotForEver) {
  for (const int retried : {EINTR, EAGAIN}) {
    DiskSegment s = segment_of(4096, 4096, 1);
    int error = -1;
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(advance(s, -retried, error), SegmentState::kAgain);
    EXPECT_EQ(advance(s, 1000, error), SegmentState::kAgain);
    SegmentState state = SegmentState::kAgain;
    for (int i = 0; i < 100'000 && state == SegmentState::kAgain; ++i) state = advance(s, -retried, error);
    EXPECT_EQ(state, SegmentState::kFailed);
    EXPECT_EQ(error, retried);
  }
}

TEST(DiskSegment, OtherErrorsAreReported) {
  DiskSegment s = segment_of(4096, 4096, 1);
  int error = 0;
  EXPECT_EQ(advance(s, -EIO, error), SegmentState::kFailed);
  EXPECT_EQ(error, EIO);
}

// ---- Joined segments

DiskSegment neighbour(Bytes offset, Bytes length, std::byte* dst = nullptr) {
  DiskSegment segment = segment_of(length, length, 1);
  segment.fd = 3;
  segment.offset = offset;
  segment.parts[0] = {dst, length, 0};
  segment.part_count = 1;
  return segment;
}

// Lengths of the requests that go to the device for these segments, in order.
std::vector<Bytes> joined(const std::vector<DiskSegment>& segments, Bytes most = kMiB) {
  Fifo<DiskSegment> queue;
  for (const DiskSegment& segment : segments) queue.push_back(segment);
  std::vector<Bytes> lengths;
  while (!queue.empty()) lengths.push_back(take_joined(queue, most).length);
  return lengths;
}

TEST(JoinedSegments, AreNeighboursInOrderUpToTheMost) {
  const DiskSegment a = neighbour(0, 100), b = neighbour(100, 50), c = neighbour(150, 50);
  EXPECT_EQ(joined({a, b, c}), (std::vector<Bytes>{200}));
  EXPECT_EQ(joined({a, b, c}, 199), (std::vector<Bytes>{150, 50}));
  EXPECT_EQ(joined({b, a, c}), (std::vector<Bytes>{50, 100, 50})) << "in another order";
  EXPECT_EQ(joined({a, c}), (std::vector<Bytes>{100, 50})) << "with a gap";
  EXPECT_EQ(joined({a, neighbour(99, 50)}), (std::vector<Bytes>{100, 50})) << "overlapping";
  DiskSegment other = b;
  other.fd = 4;
  EXPECT_EQ(joined({a, other}), (std::vector<Bytes>{100, 50})) << "of another file";
}

TEST(JoinedSegments, AreNotThoseThatWereTriedBefore) {
  const DiskSegment a = neighbour(0, 100), b = neighbour(100, 50);
  DiskSegment begun = b, retried = b, failed = b, tail = a;
  begun.got = 1;
  retried.retries = 1;
  failed.alone = true;
  tail.needed = 99;
  for (const DiskSegment& other : {begun, retried, failed})
    EXPECT_EQ(joined({a, other}), (std::vector<Bytes>{100, 50}));
  EXPECT_EQ(joined({tail, b}), (std::vector<Bytes>{100, 50})) << "past the end of the file";
}

TEST(JoinedSegments, HaveNoMoreThanTheirParts) {
  std::vector<DiskSegment> segments;
  for (Bytes i = 0; i < 2 * DiskSegment::kMostParts + 1; ++i) segments.push_back(neighbour(i * 10, 10));
  constexpr Bytes kMost = 10 * DiskSegment::kMostParts;
  EXPECT_EQ(joined(segments), (std::vector<Bytes>{kMost, kMost, 10}));
}

// However short the reads are, the bytes of the file end up where the parts say; a part that is taken out
// again keeps its place, its length and its share inside the file.
TEST(JoinedSegments, DeliverWhatTheirPartsWouldHave) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::string file = random_text(random, 400);
    std::vector<std::string> memory(1 + random() % DiskSegment::kMostParts);
    Fifo<DiskSegment> queue;
    const Bytes begin = random() % 8;
    Bytes at = begin;
    for (std::string& part : memory) {
      part.assign(1 + random() % 40, '?');
      queue.push_back(neighbour(at, part.size(), reinterpret_cast<std::byte*>(part.data())));
      at += part.size();
    }
    DiskSegment segment = take_joined(queue, kMiB);
    ASSERT_TRUE(queue.empty());
    ASSERT_EQ(segment.part_count, memory.size());
    std::vector<DiskSegment> apart;
    take_apart(segment, apart);
    at = begin;
    ASSERT_EQ(apart.size(), memory.size());
    for (std::size_t i = 0; i < memory.size(); at += memory[i++].size()) {
      EXPECT_EQ(apart[i].offset, at);
      EXPECT_EQ(apart[i].length, memory[i].size());
      EXPECT_EQ(apart[i].needed, memory[i].size());
      EXPECT_EQ(static_cast<void*>(apart[i].parts[0].dst), memory[i].data());
    }
    for (SegmentState state = SegmentState::kAgain; state == SegmentState::kAgain;) {
      DiskVectors vectors;
      const unsigned count = memory_of(segment, vectors);
      Bytes wanted = 0;
      for (unsigned i = 0; i < count; ++i) wanted += vectors[i].iov_len;
      ASSERT_EQ(wanted, segment.length - segment.got);
      const Bytes got = 1 + random() % wanted;
      Bytes from = segment.offset + segment.got, left = got;
      for (unsigned i = 0; i < count; ++i) {
        const Bytes some = std::min<Bytes>(left, vectors[i].iov_len);
        std::memcpy(vectors[i].iov_base, file.data() + from, some);
        from += some;
        left -= some;
      }
      int error = 0;
      state = advance(segment, static_cast<std::int64_t>(got), error);
    }
    std::string all;
    for (const std::string& part : memory) all += part;
    EXPECT_EQ(all, file.substr(begin, all.size()));
  }
}

// ---- Every reader

struct Way {
  DiskMethod method;
  ReadMode mode;
};

std::string way_name(const ::testing::TestParamInfo<Way>& info) {
  return std::string(info.param.method == DiskMethod::kIoUring ? "IoUring" : "Pread") +
         (info.param.mode == ReadMode::kDirect ? "Direct" : "Buffered");
}

class DiskReaderTest : public ::testing::TestWithParam<Way> {
 protected:
  DiskReaderTest() : dir_(".") { SCOPED_TRACE("seed " + std::to_string(seed_)); }

  void SetUp() override {
    RecordProperty("seed", static_cast<int>(seed_));
    // A kernel that forbids io_uring, or a file system without direct I/O, is not our fault; any other error
    // is.
    try {
      make_disk_reader(options());
      InputFile::open(dir_.write("probe", "x"), GetParam().mode);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
      GTEST_SKIP() << "no io_uring or no direct I/O here, so it is not tested: " << e.what();
    }
  }

  void TearDown() override {
    if (HasFailure()) std::printf("seed %u\n", seed_);
  }

  static DiskOptions options(unsigned depth = 4, Bytes segment = 64 * kKiB) {
    return {.method = GetParam().method, .queue_depth = depth, .segment_bytes = segment, .pread_threads = 3};
  }

  InputFile file_of(const std::string& content) {
    return InputFile::open(dir_.write("f" + std::to_string(files_++), content), GetParam().mode);
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  const ScratchDirectory dir_;
  int files_ = 0;
};

TEST_P(DiskReaderTest, DeliversEveryReadWhateverTheDepthAndSegments) {
  const std::string content = random_text(random_, 3'000'001);
  const InputFile file = file_of(content);
  for (const unsigned depth : {1u, 2u, 16u}) {
    for (const Bytes segment : {kBlockBytes, 64 * kKiB, kMiB}) {
      const auto reader = make_disk_reader(options(depth, segment));
      EXPECT_EQ(reader->name(), GetParam().method == DiskMethod::kIoUring ? "io_uring" : "pread");
      struct Wanted {
        Bytes offset, length;
        std::unique_ptr<AlignedBuffer> buffer;
      };
      std::map<std::uint64_t, Wanted> wanted;
      const Bytes blocks = round_up(content.size(), kBlockBytes) / kBlockBytes;
      for (std::uint64_t tag = 100; tag < 130; ++tag) {
        const Bytes offset = random_() % blocks * kBlockBytes;
        const Bytes length = (1 + random_() % (blocks - offset / kBlockBytes)) * kBlockBytes;
        wanted[tag] = {offset, length, std::make_unique<AlignedBuffer>(length)};
        reader->submit(
            {.file = &file, .offset = offset, .length = length, .dst = wanted[tag].buffer->data, .tag = tag});
      }
      EXPECT_EQ(reader->in_flight(), wanted.size());
      std::vector<DiskCompletion> done;
      std::size_t seen = 0;
      Bytes delivered = 0;
      while (reader->in_flight() > 0) {
        const std::size_t before = done.size();
        const std::size_t least = std::min<std::size_t>(1 + random_() % 4, reader->in_flight());
        reader->wait(least, done);
        EXPECT_GE(done.size() - before, least);
        for (; seen < done.size(); ++seen) {
          ASSERT_TRUE(wanted.contains(done[seen].tag));
          const Wanted& w = wanted[done[seen].tag];
          const Bytes inside = std::min<Bytes>(w.length, content.size() - w.offset);
          EXPECT_EQ(done[seen].error, 0);
          EXPECT_GE(done[seen].bytes, inside);
          EXPECT_LE(done[seen].bytes, w.length);
          EXPECT_TRUE(w.buffer->text(inside) == content.substr(w.offset, inside))
              << w.offset << " " << w.length;
          delivered += done[seen].bytes;
          wanted.erase(done[seen].tag);
        }
      }
      EXPECT_TRUE(wanted.empty());
      EXPECT_EQ(reader->counters().reads, 30u);
      EXPECT_EQ(reader->counters().bytes, delivered);
      EXPECT_GT(reader->counters().busy_s, 0.0);
    }
  }
}

TEST_P(DiskReaderTest, AtTheEndOfTheFile) {
  const InputFile file = file_of(std::string(10'000, 'a'));
  const auto reader = make_disk_reader(options(2, kBlockBytes));
  AlignedBuffer buffer(64 * kKiB);
  std::vector<DiskCompletion> done;
  const auto read = [&](Bytes offset, Bytes length) {
    done.clear();
    reader->submit({.file = &file, .offset = offset, .length = length, .dst = buffer.data, .tag = 1});
    reader->wait(1, done);
    EXPECT_EQ(done.size(), 1u);
    EXPECT_EQ(reader->in_flight(), 0u);
    return done.at(0);
  };
  const DiskCompletion tail = read(8192, 4096);
  EXPECT_EQ(tail.error, 0);
  EXPECT_GE(tail.bytes, 1808u);
  EXPECT_EQ(buffer.text(1808), std::string(1808, 'a'));
  EXPECT_EQ(read(0, 12'288).error, 0);
  EXPECT_EQ(read(0, 0).error, 0);
  EXPECT_EQ(read(4096, 0).bytes, 0u);
  EXPECT_EQ(read(12'288, 0).error, 0) << "within a block of the end";
  EXPECT_EQ(read(0, 16'384).error, ENODATA) << "more than rounding";
  EXPECT_EQ(read(8192, 8192).error, ENODATA);
  EXPECT_EQ(read(65'536, 4096).error, ENODATA);

  const InputFile empty = file_of("");
  reader->submit({.file = &empty, .offset = 0, .length = 0, .dst = nullptr, .tag = 2});
  reader->wait(1, done);
  EXPECT_EQ(done.back().error, 0);
}

TEST_P(DiskReaderTest, AFileTruncatedAfterOpeningIsAnErrorOfItsReadOnly) {
  const std::string content(300'000, 'b');
  const InputFile file = file_of(content);
  const InputFile good = file_of(content);
  ASSERT_EQ(::truncate(file.path().c_str(), 100'000), 0);
  const auto reader = make_disk_reader(options());
  AlignedBuffer a(303'104), b(303'104), c(98'304);
  reader->submit({.file = &file, .offset = 0, .length = 303'104, .dst = a.data, .tag = 1});
  reader->submit({.file = &good, .offset = 0, .length = 303'104, .dst = b.data, .tag = 2});
  reader->submit({.file = &file, .offset = 0, .length = 98'304, .dst = c.data, .tag = 3});
  std::vector<DiskCompletion> done;
  reader->wait(3, done);
  std::map<std::uint64_t, DiskCompletion> by_tag;
  for (const DiskCompletion& completion : done) by_tag[completion.tag] = completion;
  EXPECT_EQ(by_tag[1].error, ENODATA);
  EXPECT_LT(by_tag[1].bytes, 300'000u);
  EXPECT_EQ(by_tag[2].error, 0);
  EXPECT_TRUE(b.text(300'000) == content);
  EXPECT_EQ(by_tag[3].error, 0);
}

TEST_P(DiskReaderTest, AnErrorOfTheSystemIsReported) {
  // A buffer at an address that cannot be written: the kernel says EFAULT for this read, and the next one is
  // fine.
  const std::string content(8192, 'c');
  const InputFile file = file_of(content);
  const auto reader = make_disk_reader(options());
  AlignedBuffer buffer(8192);
  std::vector<DiskCompletion> done;
  reader->submit({.file = &file,
                  .offset = 0,
                  .length = 8192,
                  .dst = reinterpret_cast<std::byte*>(kBlockBytes),
                  .tag = 1});
  reader->submit({.file = &file, .offset = 0, .length = 8192, .dst = buffer.data, .tag = 2});
  reader->wait(2, done);
  ASSERT_EQ(done.size(), 2u);
  for (const DiskCompletion& completion : done) EXPECT_EQ(completion.error, completion.tag == 1 ? EFAULT : 0);
  EXPECT_EQ(buffer.text(8192), content);
}

TEST_P(DiskReaderTest, NeighboursAreOneRequestToTheDevice) {
  const std::string content = random_text(random_, 40 * kBlockBytes);
  const InputFile file = file_of(content);
  for (const unsigned depth : {1u, 16u}) {
    const auto reader = make_disk_reader(options(depth));
    const auto read = [&](Bytes block, Bytes blocks, AlignedBuffer& buffer) {
      reader->submit({.file = &file,
                      .offset = block * kBlockBytes,
                      .length = blocks * kBlockBytes,
                      .dst = buffer.data,
                      .tag = block});
    };
    AlignedBuffer a(3 * kBlockBytes), b(kBlockBytes), c(12 * kBlockBytes), d(2 * kBlockBytes);
    read(0, 3, a);
    read(3, 1, b);
    read(4, 12, c);  // 16 blocks, the longest request
    read(17, 2, d);  // a block further
    std::vector<DiskCompletion> done;
    reader->wait(4, done);
    ASSERT_EQ(done.size(), 4u);
    for (const DiskCompletion& completion : done) EXPECT_EQ(completion.error, 0);
    EXPECT_EQ(reader->counters().reads, 4u);
    EXPECT_EQ(reader->counters().requests, 2u);
    EXPECT_EQ(reader->counters().bytes, 18 * kBlockBytes);
    EXPECT_TRUE(a.text(a.size) + b.text(b.size) + c.text(c.size) == content.substr(0, 16 * kBlockBytes));
    EXPECT_TRUE(d.text(d.size) == content.substr(17 * kBlockBytes, d.size));
  }
}

TEST_P(DiskReaderTest, AFaultInAJoinedRequestIsAnErrorOfItsReadOnly) {
  const std::string content = random_text(random_, 8 * kBlockBytes);
  const InputFile file = file_of(content);
  const auto reader = make_disk_reader(options());
  AlignedBuffer buffer(8 * kBlockBytes);
  std::map<std::uint64_t, DiskCompletion> by_tag;
  const auto wait_for_all = [&] {
    std::vector<DiskCompletion> done;
    reader->wait(reader->in_flight(), done);
    by_tag.clear();
    for (const DiskCompletion& completion : done) by_tag[completion.tag] = completion;
  };
  const auto read = [&](std::uint64_t block) {
    std::byte* const nowhere = reinterpret_cast<std::byte*>(kBlockBytes);
    const Bytes at = block * kBlockBytes;
    std::byte* const dst = block == 3 ? nowhere : buffer.data + at;
    reader->submit({.file = &file, .offset = at, .length = kBlockBytes, .dst = dst, .tag = block});
  };
  for (std::uint64_t block = 0; block < 8; ++block) read(block);
  wait_for_all();
  ASSERT_EQ(by_tag.size(), 8u);
  for (std::uint64_t block = 0; block < 8; ++block) {
    EXPECT_EQ(by_tag[block].error, block == 3 ? EFAULT : 0) << block;
    if (block == 3) continue;
    const Bytes at = block * kBlockBytes;
    EXPECT_TRUE(buffer.text(at + kBlockBytes).substr(at) == content.substr(at, kBlockBytes)) << block;
  }
  // The file is cut inside the third block of the next request.
  ASSERT_EQ(::truncate(file.path().c_str(), 6 * kBlockBytes + 100), 0);
  for (std::uint64_t block = 4; block < 8; ++block) read(block);
  wait_for_all();
  ASSERT_EQ(by_tag.size(), 4u);
  for (std::uint64_t block = 4; block < 8; ++block) EXPECT_EQ(by_tag[block].error, block < 6 ? 0 : ENODATA);
}

TEST_P(DiskReaderTest, WaitForMoreThanIsInFlightReturns) {
  const InputFile file = file_of(std::string(4096, 'd'));
  const auto reader = make_disk_reader(options());
  AlignedBuffer buffer(4096);
  std::vector<DiskCompletion> done;
  reader->wait(0, done);
  reader->wait(5, done);
  EXPECT_TRUE(done.empty());
  reader->submit({.file = &file, .offset = 0, .length = 4096, .dst = buffer.data, .tag = 1});
  reader->wait(5, done);
  EXPECT_EQ(done.size(), 1u);
}

TEST_P(DiskReaderTest, PollingGetsEverythingInTheEnd) {
  const InputFile file = file_of(std::string(kMiB, 'e'));
  const auto reader = make_disk_reader(options(1, kBlockBytes));
  AlignedBuffer buffer(kMiB);
  for (Bytes i = 0; i < 4; ++i) {
    reader->submit({.file = &file,
                    .offset = i * 256 * kKiB,
                    .length = 256 * kKiB,
                    .dst = buffer.data + i * 256 * kKiB,
                    .tag = i});
  }
  std::vector<DiskCompletion> done;
  while (reader->in_flight() > 0) {
    reader->wait(0, done);
    std::this_thread::yield();
  }
  EXPECT_EQ(done.size(), 4u);
  EXPECT_EQ(buffer.text(kMiB), std::string(kMiB, 'e'));
}

TEST_P(DiskReaderTest, DestructionWithReadsInFlightLeavesTheBuffersAlone) {
  const std::string content = random_text(random_, 4 * kMiB);
  const InputFile file = file_of(content);
  for (int i = 0; i < 10; ++i) {
    AlignedBuffer buffer(4 * kMiB);
    {
      const auto reader = make_disk_reader(options(4, 256 * kKiB));
      for (Bytes part = 0; part < 4; ++part) {
        reader->submit({.file = &file,
                        .offset = part * kMiB,
                        .length = kMiB,
                        .dst = buffer.data + part * kMiB,
                        .tag = part});
      }
      std::vector<DiskCompletion> done;
      if (i % 2 == 0) reader->wait(1, done);
    }
    // From here on nobody writes: what is seen now stays (a late write would also be caught by the
    // sanitizers).
    std::memset(buffer.data, 0x11, buffer.size);
    std::this_thread::yield();
    EXPECT_EQ(buffer.text(buffer.size), std::string(buffer.size, '\x11'));
  }
}

TEST_P(DiskReaderTest, WithDepthOneReadsCompleteInOrderOfSubmission) {
  const InputFile file = file_of(std::string(kMiB, 'f'));
  DiskOptions one = options(1, kBlockBytes);
  const auto reader = make_disk_reader(one);
  AlignedBuffer buffer(kMiB);
  for (std::uint64_t tag = 0; tag < 20; ++tag) {
    const Bytes length = (1 + random_() % 5) * kBlockBytes;
    reader->submit({.file = &file,
                    .offset = 0,
                    .length = length,
                    .dst = buffer.data + tag * 5 * kBlockBytes,
                    .tag = tag});
  }
  std::vector<DiskCompletion> done;
  reader->wait(20, done);
  ASSERT_EQ(done.size(), 20u);
  for (std::uint64_t tag = 0; tag < 20; ++tag) EXPECT_EQ(done[tag].tag, tag);
}

TEST_P(DiskReaderTest, InjectedFaultsHitTheChosenReads) {
  const std::string content = random_text(random_, 40 * kBlockBytes);
  const InputFile file = file_of(content);
  const auto reader = make_faulty_reader(make_disk_reader(options()),
                                         [](const DiskRead& read) { return read.tag % 3 == 0 ? EIO : 0; });
  AlignedBuffer buffer(content.size());
  for (std::uint64_t tag = 0; tag < 40; ++tag) {
    const Bytes at = tag * kBlockBytes;
    reader->submit({.file = &file, .offset = at, .length = kBlockBytes, .dst = buffer.data + at, .tag = tag});
  }
  EXPECT_EQ(reader->in_flight(), 40u);
  std::vector<DiskCompletion> done;
  reader->wait(40, done);
  ASSERT_EQ(done.size(), 40u);
  EXPECT_EQ(reader->in_flight(), 0u);
  EXPECT_EQ(reader->counters().reads, 40u);
  for (const DiskCompletion& completion : done) {
    const Bytes at = completion.tag * kBlockBytes;
    EXPECT_EQ(completion.error, completion.tag % 3 == 0 ? EIO : 0);
    const std::string got = buffer.text(content.size()).substr(at, kBlockBytes);
    EXPECT_TRUE(got ==
                (completion.error != 0 ? std::string(kBlockBytes, '\xee') : content.substr(at, kBlockBytes)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, DiskReaderTest,
                         ::testing::Values(Way{DiskMethod::kIoUring, ReadMode::kBuffered},
                                           Way{DiskMethod::kIoUring, ReadMode::kDirect},
                                           Way{DiskMethod::kPread, ReadMode::kBuffered},
                                           Way{DiskMethod::kPread, ReadMode::kDirect}),
                         way_name);

// ---- Factory

TEST(MakeDiskReader, AutoAlwaysGivesAReader) {
  const std::string name = make_disk_reader({})->name();
  EXPECT_TRUE(name == "io_uring" || name == "pread") << name;
}

TEST(MakeDiskReader, OptionsOutOfRangeAreRefused) {
  for (const DiskOptions& options :
       {DiskOptions{.queue_depth = 0}, DiskOptions{.queue_depth = 5000}, DiskOptions{.segment_bytes = 0},
        DiskOptions{.segment_bytes = 5000}, DiskOptions{.segment_bytes = 2 * kGiB},
        DiskOptions{.pread_threads = 0}}) {
    try {
      make_disk_reader(options);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage) << e.what();
    }
  }
}

TEST(MakeFaultyReader, CompletesFailedReadsWithoutTheInnerOne) {
  const ScratchDirectory dir;
  const InputFile file = InputFile::open(dir.write("f", "text"));
  const auto reader = make_faulty_reader(make_disk_reader({.method = DiskMethod::kPread}),
                                         [](const DiskRead&) { return EIO; });
  std::byte byte{};
  reader->submit({.file = &file, .offset = 0, .length = 1, .dst = &byte, .tag = 9});
  std::vector<DiskCompletion> done;
  reader->wait(1, done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tag, 9u);
  EXPECT_EQ(done[0].error, EIO);
  EXPECT_EQ(done[0].bytes, 0u);
}

}  // namespace
}  // namespace sluice
