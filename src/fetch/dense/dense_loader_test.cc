#include "fetch/dense/dense_loader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "fetch/dense/dense_parts.h"
#include "fetch/dense/layout_reads.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::fetch {
namespace {

using ::testing::HasSubstr;

// One BF16 tensor of several packing chunks in a safetensors file with a header of odd length.
class DenseLoaderTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 5000,
                                 kCols = 1001;  // 5,005,000 words: five chunks of 2^20, two groups

  DenseLoaderTest() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 0.02f);
    for (std::uint64_t i = 0; i < kRows * kCols; ++i) {
      const float value = normal(random);
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      words_.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    const std::string header = R"({"w":{"dtype":"BF16","shape":[5000,1001],"data_offsets":[0,10010000]}})";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    file += header;
    file.append(reinterpret_cast<const char*>(words_.data()), words_.size() * 2);
    std::filesystem::create_directory(scratch_.path() + "/model");
    std::ofstream(scratch_.path() + "/model/model.safetensors", std::ios::binary) << file;
  }

  std::string packed(const std::string& codec) {
    const std::string path = scratch_.path() + "/" + codec + ".sluice";
    store::PackOptions options;
    options.codec = codec;
    store::pack(scratch_.path() + "/model", path, {"test", {}}, options);
    return path;
  }

  ResidentPiece load(const std::string& path, const FetchOptions& options = {}) {
    const auto checkpoint = store::open_checkpoint(path);
    WeightFiles files(*checkpoint, options);
    PieceDecoder decoder(files, pool_, best_isa(), checkpoint->codec());
    const store::StoredPiece piece = checkpoint->locate({"w", 0, kRows * kCols});
    EXPECT_EQ(accountant_.used(), 0u);
    ResidentPiece loaded = load_piece(piece, files, decoder, accountant_, device::Account::kDense);
    EXPECT_EQ(accountant_.used(), resident_bytes(piece));
    // Over all loads so far, like the peak.
    most_staged_ = std::max(most_staged_, load_staging_bytes(piece));
    EXPECT_LE(accountant_.peak(device::Account::kStaging), most_staged_);
    return loaded;
  }

  // Loads the piece twice; nothing stays staged.
  std::vector<PackedPiece> load_packed_pieces(const std::string& path, const FetchOptions& options = {}) {
    const auto checkpoint = store::open_checkpoint(path);
    WeightFiles files(*checkpoint, options);
    PieceDecoder decoder(files, pool_, best_isa(), checkpoint->codec());
    const std::vector<NamedPiece> pieces(2, {"w", checkpoint->locate({"w", 0, kRows * kCols})});
    EXPECT_EQ(accountant_.used(), 0u);
    std::vector<PackedPiece> loaded =
        load_packed(pieces, files, decoder, accountant_, device::Account::kDense);
    EXPECT_EQ(accountant_.used(), 2 * packed_bytes(pieces[0].stored));
    EXPECT_LT(packed_bytes(pieces[0].stored), resident_bytes(pieces[0].stored) * 7 / 10);
    EXPECT_EQ(accountant_.used(device::Account::kDense), accountant_.used());
    return loaded;
  }

  // The planes of the tensor that parts make up; the second one is as large as the tensor's buffer.
  std::array<std::vector<std::byte>, 2> load_by_parts(const std::string& path, PartForm form,
                                                      const FetchOptions& options = {}) {
    const auto checkpoint = store::open_checkpoint(path);
    WeightFiles files(*checkpoint, options);
    PieceDecoder decoder(files, pool_, best_isa(), checkpoint->codec());
    const store::StoredPiece piece = checkpoint->locate({"w", 0, kRows * kCols});
    device::Accountant accountant(64 * kMiB);
    std::array<std::vector<std::byte>, 2> planes;
    parts_ = 0;
    load_in_parts(piece, form, files, decoder, accountant, [&](const TensorPart& part) {
      std::vector<std::byte>& plane = planes.at(part.plane);
      plane.resize(std::max(plane.size(), part.at + part.bytes.size()));
      std::memcpy(plane.data() + part.at, part.bytes.data(), part.bytes.size());
      ++parts_;
    });
    EXPECT_EQ(accountant.used(), 0u);
    EXPECT_EQ(accountant.peak(), accountant.peak(device::Account::kStaging));
    EXPECT_EQ(accountant.peak(), parts_staging_bytes(piece, form));
    EXPECT_LT(accountant.peak(), 6 * kMiB);  // out of about 10
    return planes;
  }

  sluice::testing::ScratchDirectory scratch_;
  std::vector<std::uint16_t> words_;
  std::size_t parts_ = 0;
  ThreadPool pool_{2};
  device::Accountant accountant_{64 * kMiB};
  Bytes most_staged_ = 0;
};

TEST_F(DenseLoaderTest, WordsAreTheFilesFromDirectoryAndStores) {
  for (const std::string& path :
       {scratch_.path() + "/model", packed("none"), packed("native"), packed("zstd"), packed("lz4")}) {
    const ResidentPiece loaded = load(path);
    ASSERT_EQ(loaded.elements, words_.size());
    EXPECT_EQ(std::memcmp(loaded.data, words_.data(), words_.size() * 2), 0) << path;
  }
}

// Counts what has been asked for and not been handed out, which a buffered read may leave in the page cache.
class CountingReader final : public DiskReader {
 public:
  CountingReader(std::unique_ptr<DiskReader> inner, Bytes& most) : inner_(std::move(inner)), most_(most) {}
  void submit(const DiskRead& read) override {
    lengths_[read.tag] = read.length;
    now_ += read.length;
    most_ = std::max(most_, now_);
    inner_->submit(read);
  }
  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    const std::size_t before = done.size();
    inner_->wait(min_completions, done);
    for (std::size_t i = before; i < done.size(); ++i) now_ -= lengths_[done[i].tag];
  }
  std::size_t in_flight() const override { return inner_->in_flight(); }
  DiskCounters counters() const override { return inner_->counters(); }
  std::string name() const override { return inner_->name(); }

 private:
  std::unique_ptr<DiskReader> inner_;
  Bytes& most_;
  Bytes now_ = 0;
  std::map<std::uint64_t, Bytes> lengths_;
};

TEST_F(DenseLoaderTest, FewPagesAreInThePageCacheAtATime) {
  for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered, IoMode::kMmap}) {
    Bytes most = 0;
    FetchOptions options;
    options.io = io;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return std::make_unique<CountingReader>(std::move(inner), most);
    };
    const std::string source = scratch_.path() + "/model", native = packed("native");
    for (const std::string& path : {source, native}) {
      const ResidentPiece loaded = load(path, options);
      EXPECT_EQ(std::memcmp(loaded.data, words_.data(), words_.size() * 2), 0) << path;
    }
    load_packed_pieces(native, options);
    if (io == IoMode::kDirect)
      EXPECT_GT(most, 2 * kMostPages);
    else
      EXPECT_EQ(most, kMostPages);
    std::filesystem::remove_all(native);
  }
}

TEST_F(DenseLoaderTest, PartsMakeUpTheTensor) {
  for (const std::string& path :
       {scratch_.path() + "/model", packed("none"), packed("native"), packed("zstd"), packed("lz4")})
    for (const IoMode io : {IoMode::kDirect, IoMode::kMmap}) {
      FetchOptions options;
      options.io = io;
      const auto [words, none] = load_by_parts(path, PartForm::kWords, options);
      EXPECT_GT(parts_, 3u);
      ASSERT_EQ(words.size(), words_.size() * 2) << path;
      EXPECT_EQ(std::memcmp(words.data(), words_.data(), words.size()), 0) << path;
      EXPECT_TRUE(none.empty());
    }
}

TEST_F(DenseLoaderTest, PartsMakeUpTheStoredForm) {
  const std::string path = packed("native");
  const auto [plane, chunks] = load_by_parts(path, PartForm::kStored);
  EXPECT_GT(parts_, 6u);
  const PackedPiece whole = std::move(load_packed_pieces(path).front());
  const std::byte* const buffer = whole.buffer.data();
  ASSERT_EQ(plane.size(), whole.place.planes[0].bytes);
  EXPECT_EQ(std::memcmp(plane.data(), buffer + whole.place.planes[0].place, plane.size()), 0);
  for (const codec::PlaneChunk& chunk : whole.place.chunks) {
    ASSERT_LE(chunk.place + chunk.bytes, chunks.size());
    EXPECT_EQ(std::memcmp(chunks.data() + chunk.place, buffer + chunk.place, chunk.bytes), 0);
  }
}

TEST_F(DenseLoaderTest, AFailedReadOfAPartIsAnError) {
  const std::pair<std::string, PartForm> cases[] = {{scratch_.path() + "/model", PartForm::kWords},
                                                    {packed("zstd"), PartForm::kWords},
                                                    {packed("native"), PartForm::kStored}};
  for (const auto& [path, form] : cases)
    for (int failing = 1; failing <= 3; ++failing) {
      int reads = 0;
      FetchOptions options;
      options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
        return make_faulty_reader(std::move(inner),
                                  [&](const DiskRead&) { return ++reads == failing ? EIO : 0; });
      };
      EXPECT_THAT([&] { load_by_parts(path, form, options); },
                  ::testing::ThrowsMessage<Error>(HasSubstr("bytes failed")))
          << path << " " << failing;
    }
}

TEST_F(DenseLoaderTest, AnyFailedReadIsAnErrorAndLeavesNothingCharged) {
  const std::string path = packed("zstd");
  for (int failing = 1; failing <= 2; ++failing) {
    int reads = 0;
    FetchOptions options;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner),
                                [&](const DiskRead&) { return ++reads == failing ? EIO : 0; });
    };
    try {
      load(path, options);
      FAIL() << "read " << failing;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
    }
    EXPECT_EQ(accountant_.used(), 0u);
  }
}

// Loads one piece twice, so that one is read while the other is checked: gives the stored bytes, from which
// the words come.
TEST_F(DenseLoaderTest, PackedPiecesAreKeptAsTheyAreStored) {
  const std::string path = packed("native");
  for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered, IoMode::kMmap}) {
    FetchOptions options;
    options.io = io;
    const std::vector<PackedPiece> loaded = load_packed_pieces(path, options);
    ASSERT_EQ(loaded.size(), 2u);
    const codec::PlaneDecoder decoder("native", best_isa());
    for (const PackedPiece& piece : loaded) {
      EXPECT_EQ(piece.place.elements, words_.size());
      EXPECT_GT(piece.place.chunks.size(), 1u);
      std::vector<std::byte> words;
      for (const codec::PlaneChunk& chunk : piece.place.chunks) {
        const codec::TileShape rows = codec::tile_rows(piece.place.tiles(), chunk.first, chunk.count).shape;
        std::vector<std::byte> part(2 * rows.rows * rows.columns);
        decoder.words(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw,
                      {piece.buffer.data() + chunk.place, chunk.bytes},
                      {piece.buffer.data() + piece.place.planes[0].place + chunk.first, chunk.count}, rows,
                      part);
        words.insert(words.end(), part.begin(), part.end());
      }
      ASSERT_EQ(words.size(), 2 * words_.size());
      EXPECT_EQ(std::memcmp(words.data(), words_.data(), words.size()), 0);
    }
  }
}

TEST_F(DenseLoaderTest, AFailedReadOfAPackedPieceLeavesNothingCharged) {
  const std::string path = packed("native");
  int all = 0;
  for (int failing = 1; failing <= std::max(1, all); ++failing) {
    int reads = 0;
    FetchOptions options;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner),
                                [&](const DiskRead&) { return ++reads == failing ? EIO : 0; });
    };
    try {
      load_packed_pieces(path, options);
      FAIL() << "read " << failing;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
    }
    EXPECT_EQ(accountant_.used(), 0u);
    all = 2;  // one read per piece
  }
}

TEST_F(DenseLoaderTest, AFlippedBitAnywhereIsFound) {
  for (const std::string codec : {"zstd", "native"}) {
    const std::string path = packed(codec), file = path + "/dense.bin";
    std::mt19937_64 random(11);
    const Bytes size = std::filesystem::file_size(file);
    const auto checkpoint = store::open_checkpoint(path);
    const store::StoredPiece piece = checkpoint->locate({"w", 0, kRows * kCols});
    for (int round = 0; round < 12; ++round) {
      // Flips a byte of the plane or of a chunk; only verify checks padding.
      const bool plane = round % 2 == 0;
      const store::Extent& extent =
          plane ? piece.first() : piece.exponents[random() % piece.exponents.size()].extent;
      const Bytes at = extent.offset + random() % extent.length;
      ASSERT_LT(at, size);
      std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
      const auto flip = [&] {
        stream.seekg(static_cast<std::streamoff>(at));
        const char byte = static_cast<char>(stream.get() ^ 4);
        stream.seekp(static_cast<std::streamoff>(at));
        stream.put(byte).flush();
      };
      flip();
      EXPECT_THROW(load(path), Error) << at;
      EXPECT_EQ(accountant_.used(), 0u);
      EXPECT_THROW(load_by_parts(path, PartForm::kWords), Error) << at;
      if (codec == "native") {
        EXPECT_THROW(load_by_parts(path, PartForm::kStored), Error) << at;
        try {
          load_packed_pieces(path);
          ADD_FAILURE() << at;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
          EXPECT_EQ(error.where(), file + ", tensor \"w\"");
          EXPECT_EQ(error.offset(), extent.offset) << at;
        }
        EXPECT_EQ(accountant_.used(), 0u);
      }
      flip();
    }
  }
}

// Correct checksums, but not a valid encoding.
TEST_F(DenseLoaderTest, AnImpossibleChunkOfAPackedPieceIsNamed) {
  namespace files = store::testing;
  const std::string path = packed("native");
  const std::string manifest = files::read_file(path + "/manifest.json");
  const std::string dense = files::read_file(path + "/dense.bin");
  const auto expect_named = [&](const auto& work, const files::DamagedChunk& damaged) {
    try {
      work();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      EXPECT_EQ(error.where(), damaged.file + ", tensor \"w\"");
      EXPECT_EQ(error.offset(), damaged.bytes.offset);
      EXPECT_THAT(error.found_text(),
                  HasSubstr(fmt::format("(in a chunk of {} bytes)", damaged.bytes.length)));
      EXPECT_THAT(error.fix_text(), HasSubstr("sluice verify"));
    }
  };
  {  // damage of the structure is found at once
    const files::DamagedChunk damaged = files::damage_chunk(path, "w", files::Damage::kStructure);
    expect_named([&] { load_packed_pieces(path); }, damaged);
    EXPECT_EQ(accountant_.used(), 0u);
  }
  files::write_file(path + "/manifest.json", manifest);
  files::write_file(path + "/dense.bin", dense);
  // Damage of the codes is looked for only after a product has found some, unless the bytes go elsewhere.
  const files::DamagedChunk damaged = files::damage_chunk(path, "w", files::Damage::kCodes);
  try {
    load_by_parts(path, PartForm::kStored);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), damaged.file);
    EXPECT_EQ(error.offset(), damaged.bytes.offset);
  }
  std::vector<PackedPiece> loaded = load_packed_pieces(path);
  const auto checkpoint = store::open_checkpoint(path);
  WeightFiles weights(*checkpoint, {});
  const PieceDecoder decoder(weights, pool_, best_isa(), checkpoint->codec());
  expect_named([&] { check_codes(loaded[1], decoder); }, damaged);
  // If bytes have changed since they were read, the store is not to blame.
  loaded[0].buffer.data()[loaded[0].place.chunks.front().place] ^= std::byte{1};
  EXPECT_THAT([&] { check_codes(loaded[0], decoder); },
              ::testing::ThrowsMessage<Error>(HasSubstr("have changed since they were read")));
}

}  // namespace
}  // namespace sluice::fetch
