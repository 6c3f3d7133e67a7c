#include "fetch/dense/row_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::fetch {
namespace {

using ::testing::HasSubstr;

// A matrix whose rows begin at any byte, behind a header of odd length.
class RowTableTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 900, kColumns = 1001, kTogether = 7;

  RowTableTest() : words_(kRows * kColumns) {
    std::mt19937 random(3);
    for (std::uint16_t& word : words_) word = static_cast<std::uint16_t>(random());
    const std::string header = R"({"w":{"dtype":"BF16","shape":[900,1001],"data_offsets":[0,1801800]}} )";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    file += header;
    file.append(reinterpret_cast<const char*>(words_.data()), words_.size() * 2);
    std::filesystem::create_directory(model());
    std::ofstream(model() + "/model.safetensors", std::ios::binary) << file;
  }

  std::string model() const { return scratch_.path() + "/model"; }
  std::string packed(bool in_ranges, const std::string& codec = "zstd") {
    const std::string path = scratch_.path() + (in_ranges ? "/rows." : "/whole.") + codec + ".sluice";
    store::PackPlan plan{.architecture = "test", .experts = {}};
    for (std::uint64_t row = 0; in_ranges && row < kRows; row += kTogether)
      plan.ranges.push_back({"w", row * kColumns, std::min(kTogether, kRows - row) * kColumns});
    store::PackOptions options;
    options.codec = codec;
    store::pack(model(), path, plan, options);
    return path;
  }

  // Reads these rows and checks every word.
  void expect_rows(RowTable& table, const std::vector<std::int32_t>& rows) {
    std::vector<int> taken(rows.size());
    table.read(rows, [&](std::size_t i, const std::byte* words) {
      ++taken.at(i);
      EXPECT_EQ(std::memcmp(words, words_.data() + rows[i] * kColumns, 2 * kColumns), 0) << rows[i];
    });
    EXPECT_EQ(taken, std::vector<int>(rows.size(), 1));
  }

  sluice::testing::ScratchDirectory scratch_;
  std::vector<std::uint16_t> words_;
  device::Accountant accountant_{64 * kMiB};
};

TEST_F(RowTableTest, RowsOfDirectoriesAndStoresAreTheFiles) {
  std::mt19937 random(7);
  for (const std::string& path : {model(), packed(true), packed(true, "none")}) {
    for (const IoMode io : {IoMode::kDirect, IoMode::kBuffered, IoMode::kMmap}) {
      SCOPED_TRACE(path + " " + std::string(io_mode_name(io)));
      const auto checkpoint = store::open_checkpoint(path);
      const std::optional<RowLayout> layout = row_layout(*checkpoint, "w");
      ASSERT_TRUE(layout);
      EXPECT_EQ(layout->rows_together, path == model() ? 1 : kTogether);
      FetchOptions options;
      options.io = io;
      {
        RowTable table(*checkpoint, *layout, options, accountant_);
        EXPECT_EQ(accountant_.used(), RowTable::resident_bytes(*layout));
        EXPECT_LT(accountant_.used(), kMiB / 2);
        expect_rows(table, {});
        expect_rows(table, {0});
        expect_rows(table, {899, 0, 899, 898, 5, 6, 7, 5});
        for (int round = 0; round < 20; ++round) {
          std::vector<std::int32_t> rows(1 + random() % 100);
          for (std::int32_t& row : rows) row = static_cast<std::int32_t>(random() % kRows);
          expect_rows(table, rows);
        }
      }
      EXPECT_EQ(accountant_.used(), 0u);
    }
  }
}

TEST_F(RowTableTest, TheLastRowsAreKept) {
  const auto checkpoint = store::open_checkpoint(model());
  RowTable table(*checkpoint, *row_layout(*checkpoint, "w"), {}, accountant_);
  std::vector<std::int32_t> rows;  // as many as are kept: one of 32
  for (std::int32_t row = 0; row < 28; ++row) rows.push_back(31 * row);
  expect_rows(table, rows);
  const std::uint64_t reads = table.counters().reads;
  EXPECT_EQ(reads, rows.size());
  expect_rows(table, rows);
  expect_rows(table, {rows[3], rows[3], rows[20]});
  EXPECT_EQ(table.counters().reads, reads);
  expect_rows(table, {1});  // replaces the least recently used one
  expect_rows(table, {rows[0]});
  EXPECT_EQ(table.counters().reads, reads + 2);
  expect_rows(table, {rows[20], 1});
  EXPECT_EQ(table.counters().reads, reads + 2);
}

TEST_F(RowTableTest, WhatIsCodedOrHasOneChecksumHasNoRows) {
  for (const char* codec : {"zstd", "none"}) {
    const auto checkpoint = store::open_checkpoint(packed(false, codec));
    EXPECT_FALSE(row_layout(*checkpoint, "w")) << codec;
    EXPECT_FALSE(row_layout(*checkpoint, "x"));
  }
}

TEST_F(RowTableTest, AFailedReadIsAnErrorAndTheNextOneWorks) {
  for (const std::string& path : {model(), packed(true)}) {
    const auto checkpoint = store::open_checkpoint(path);
    bool fail = false;
    FetchOptions options;
    options.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      int count = 0;
      return make_faulty_reader(
          std::move(inner), [&, count](const DiskRead&) mutable { return fail && ++count == 2 ? EIO : 0; });
    };
    RowTable table(*checkpoint, *row_layout(*checkpoint, "w"), options, accountant_);
    fail = true;
    try {
      table.read(std::vector<std::int32_t>{1, 100, 200, 300}, [](std::size_t, const std::byte*) {});
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
    }
    fail = false;
    expect_rows(table, {1, 100, 200, 300});
  }
}

TEST_F(RowTableTest, AFlippedBitOfAStoreIsFound) {
  const std::string path = packed(true), file = path + "/dense.bin";
  const auto checkpoint = store::open_checkpoint(path);
  const store::StoredPiece piece = checkpoint->locate({"w", 14 * kColumns, kTogether * kColumns});
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(piece.first().offset + 2 * kColumns + 17));
  const char byte = static_cast<char>(stream.get() ^ 4);
  stream.seekp(static_cast<std::streamoff>(piece.first().offset + 2 * kColumns + 17));
  stream.put(byte);
  stream.close();
  RowTable table(*checkpoint, *row_layout(*checkpoint, "w"), {}, accountant_);
  expect_rows(table, {13, 21});
  try {
    table.read(std::vector<std::int32_t>{20}, [](std::size_t, const std::byte*) {});  // in the same piece
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("dense.bin"));
  }
}

}  // namespace
}  // namespace sluice::fetch
