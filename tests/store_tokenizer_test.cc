// The compiled tokenizer in a store: the built program needs no other file, and reads the model's own files
// where the compiled tokenizer is damaged, of another version or unreadable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "base/hash.h"
#include "packed_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::program::content_of;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;

class StoreTokenizer : public PackedModelTest {};

TEST_F(StoreTokenizer, TheTokenizerInAStoreNeedsNoFilesBesideIt) {
  const std::string copy = file("compiled.sluice");
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string command =
      "run " + copy + " -p 'Once upon a time' -n 8 --temp 0 -q --memory " + memory(40) + " --ignore-eos";
  const std::string text = run(command).out;
  EXPECT_GT(text.size(), 8u);
  const auto flip = [&](const std::string& name) {
    std::fstream bytes(copy + name, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(5000);
    const char byte = static_cast<char>(bytes.get() ^ 1);
    bytes.seekp(5000);
    bytes.put(byte);
  };
  flip("/files/tokenizer.json");
  EXPECT_EQ(run(command).out, text);
  flip("/sidecar/tokenizer.bin");
  Outcome outcome = run(command);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("files/tokenizer.json"), std::string::npos) << outcome.err;
  fs::remove(copy + "/sidecar/tokenizer.bin");
  outcome = run(command);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("files/tokenizer.json"), std::string::npos) << outcome.err;
  flip("/files/tokenizer.json");
  EXPECT_EQ(run(command).out, text);
  fs::remove_all(copy);
}

TEST_F(StoreTokenizer, ADamagedTokenizerInAStoreIsReplacedByItsFiles) {
  const std::string copy = file("damaged.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  std::ifstream in(sidecar, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::string flipped = good, malformed = good;
  flipped[5000] ^= 1;
  malformed[0] = 'X';
  for (const std::string& damaged : {flipped, malformed, good.substr(0, 100), std::string()}) {
    std::ofstream(sidecar, std::ios::binary) << damaged;
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: "));
    EXPECT_NE(outcome.err.find("sidecar/tokenizer.bin at byte"), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with("; remove it: the model's files say the same\n")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(run(request + " -q").err, "");
  }
  fs::remove(sidecar);
  fs::create_directory(sidecar);
  const Outcome directory = run(request);
  EXPECT_EQ(directory.out, ids);
  EXPECT_EQ(directory.err,
            "sluice: warning: the tokenizer is read from the model's files: " + sidecar +
                ": not a regular file; expected a regular file, found a directory; remove it: the "
                "model's files say the same\n");
  EXPECT_NE(run("verify " + copy + " -q")
                .err.find("sidecar/tokenizer.bin at byte 0: a directory has the name of a "
                          "sidecar; expected a file, or nothing, found a directory; remove "
                          "it\n"),
            std::string::npos);
  fs::remove(sidecar);
  std::ofstream(sidecar) << "X";
  // Also in a run, whose text is the same.
  const std::string command = " -p 'Once upon a time' -n 8 --temp 0 --memory " + memory(40) + " --ignore-eos";
  const Outcome outcome = run("run " + copy + command);
  EXPECT_EQ(outcome.out, run("run " + store() + command).out);
  EXPECT_NE(outcome.err.find("warning: the tokenizer is read"), std::string::npos) << outcome.err;
  fs::remove_all(copy);
}

// The bytes of a sidecar of tables, with its checksums made right again (docs/store-format.md, section 5.1).
std::string with_checksums(std::string file) {
  const auto read = [&](std::size_t at, auto number) {
    std::memcpy(&number, file.data() + at, sizeof number);
    return number;
  };
  const auto put_sum = [&](std::size_t at, std::size_t begin, std::size_t size) {
    const std::uint64_t sum = sluice::xxh3(std::as_bytes(std::span(file)).subspan(begin, size));
    std::memcpy(file.data() + at, &sum, sizeof sum);
  };
  std::size_t end = 48;
  for (auto tables = read(12, std::uint32_t{}); tables > 0; --tables, end += 40)
    put_sum(end + 32, read(end + 16, std::uint64_t{}), read(end + 24, std::uint64_t{}));
  put_sum(end, 0, end);
  return file;
}

// A later program may write another layout or version, or components that this one does not know.
TEST_F(StoreTokenizer, ACompiledTokenizerOfAnotherVersionIsReplacedByItsFiles) {
  const std::string copy = file("later.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  const std::string good = content_of(sidecar);
  ASSERT_EQ(with_checksums(good), good);
  std::string layout = good, version = good, component = good;
  ++layout[8];
  ++version[40];
  component.replace(component.find("NFC"), 3, "NFX");
  for (const std::string& other : {layout, with_checksums(version), with_checksums(component)}) {
    std::ofstream(sidecar, std::ios::binary) << other;
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: "))
        << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(run(request + " -q").err, "");
  }
}

// A link to itself is to root, too, what a file without permission is to others.
TEST_F(StoreTokenizer, ACompiledTokenizerThatCannotBeReadIsReplacedByItsFiles) {
  const std::string copy = file("unreadable.sluice"), sidecar = copy + "/sidecar/tokenizer.bin";
  fs::copy(store(), copy, fs::copy_options::recursive);
  const std::string request = "tokenize " + copy + " -p 'Once upon a time'";
  const std::string ids = run(request).out;
  for (const std::string made : {"mkfifo ", "mkdir ", "ln -s tokenizer.bin "}) {
    fs::remove(sidecar);
    ASSERT_EQ(std::system((made + sidecar).c_str()), 0);
    const Outcome outcome = run(request);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, ids);
    EXPECT_TRUE(
        outcome.err.starts_with("sluice: warning: the tokenizer is read from the model's files: " + sidecar))
        << outcome.err;
  }
}

}  // namespace
