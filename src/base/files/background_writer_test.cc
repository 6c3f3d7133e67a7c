#include "base/files/background_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "base/error.h"
#include "base/files/scratch_directory.h"

namespace sluice {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BackgroundWriter, WritesEverythingInOrderWhateverTheSizes) {
  const testing::ScratchDirectory scratch;
  for (const Bytes ring : {1u, 7u, 64u, 4096u}) {
    const std::uint64_t seed = 11 + ring;
    SCOPED_TRACE("ring " + std::to_string(ring) + ", seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::string path = scratch.file("out" + std::to_string(ring));
    std::string expected;
    BackgroundWriter writer(OutputFile::create(path), ring);
    for (int i = 0; i < 60; ++i) {
      std::string piece(random() % 100, '\0');  // often larger than the ring
      for (char& c : piece) c = static_cast<char>(random());
      writer.write(piece);
      expected += piece;
    }
    writer.close();
    writer.close();
    EXPECT_EQ(content_of(path), expected);
  }
}

TEST(BackgroundWriter, WhatIsCutIsGoneAndWritingGoesOnThere) {
  const testing::ScratchDirectory scratch;
  const std::string path = scratch.file("out");
  BackgroundWriter writer(OutputFile::create(path), 8);
  writer.write("twelve bytes");
  writer.cut(6);
  writer.cut(6);
  writer.write(", and on");
  writer.close();
  EXPECT_EQ(content_of(path), "twelve, and on");
}

TEST(BackgroundWriter, AFullDiskIsAnErrorOfALaterCallNotSilence) {
  BackgroundWriter writer(OutputFile::open_for_append("/dev/full", 0), 16);
  try {
    for (int i = 0; i < 100; ++i) writer.write("0123456789");
    writer.close();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("/dev/full"), std::string::npos) << error.what();
  }
  EXPECT_THROW(writer.close(), Error);  // a failed writer stays failed
}

TEST(BackgroundWriter, AbandonedItEndsWithoutClosing) {
  const testing::ScratchDirectory scratch;
  { BackgroundWriter writer(OutputFile::create(scratch.file("a")), 8); }
  {
    BackgroundWriter writer(OutputFile::create(scratch.file("b")), 8);
    writer.write("0123456789abcdef");
  }
}

}  // namespace
}  // namespace sluice
