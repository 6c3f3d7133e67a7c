// Packed stores under hard circumstances: killed, interrupted, out of space, two at once, strange
// directories; by the program and by another decoder. What one process can show is in src/store/*_test.cc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/error.h"
#include "store/testing.h"
#include "store/unpack.h"
#include "store/verify.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of store/testing.h
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Runs `body` in a child process that ends with its result. REQUIRES: no other threads.
pid_t in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (const Error& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(code);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool wait_until(const std::function<bool()>& done, std::chrono::seconds limit = std::chrono::seconds(30)) {
  const Clock::time_point end = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome run(const std::string& command) {
  const TempDirectory temp;
  const int status =
      std::system(fmt::format("{} >{} 2>{} </dev/null", command, temp / "out", temp / "err").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(temp / "out"), read_file(temp / "err")};
}
Outcome sluice(const std::string& arguments) { return run("'" SLUICE_PROGRAM "' " + arguments); }

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class StorePack : public ::testing::Test {
 protected:
  void SetUp() override {
    write_sharded_tiny_model(source_, model_, 3);
    write_file(source_ + "/tokenizer/vocab.txt", random_bytes(9000, 4));
    fs::create_directories(source_ + "/empty");
  }
  void pack_to(const std::string& store, const PackOptions& options) {
    pack(source_, store, tiny_plan(model_), options);
  }

  const TempDirectory temp_;
  const TinyModel model_{.layers = 3, .experts = 4};
  const std::string source_ = temp_ / "source";
};

// At 50 random moments, some of them in the run that takes up the work of one that was killed before.
TEST_F(StorePack, KilledAndRunAgainItGivesTheSameBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int reports = 0;
  PackOptions options = tiny_options("zstd");
  options.on_progress = [&](const PackProgress&) { ++reports; };
  const Clock::time_point start = Clock::now();
  pack_to(temp_ / "whole.sluice", options);
  const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  const auto whole = read_tree(temp_ / "whole.sluice");
  const std::string store = temp_ / "x.sluice", partial = store + ".partial";

  int kills = 0, resumed = 0;
  for (int attempt = 0; kills < 50 && attempt < 1000; ++attempt) {
    const bool by_time = random() % 2 == 0;
    const unsigned at_report = random() % static_cast<unsigned>(reports + 2);
    const std::chrono::microseconds at_time(random() % static_cast<unsigned>(duration.count() + 1));
    const pid_t child = in_child([&] {
      unsigned seen = 0;
      options.on_progress = [&](const PackProgress&) {
        if (!by_time && seen++ == at_report) ::kill(::getpid(), SIGKILL);
      };
      pack_to(store, options);
      return 0;
    });
    if (by_time) {
      std::this_thread::sleep_for(at_time);
      ::kill(child, SIGKILL);
    }
    const int status = wait_for(child);
    if (WIFSIGNALED(status)) {
      ++kills;
      if (fs::exists(store)) {
        EXPECT_EQ(read_tree(store), whole);  // whole or not at all
        fs::remove_all(store);
      } else if (random() % 2 == 0) {
        PackOptions go_on = tiny_options("zstd");
        const PackResult result = pack(source_, store, tiny_plan(model_), go_on);
        resumed += result.resumed_bytes > 0;
        ASSERT_EQ(read_tree(store), whole) << "kill " << kills;
        EXPECT_FALSE(fs::exists(partial));
        fs::remove_all(store);
      }  // else the next child goes on, and may be killed again
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      ASSERT_EQ(read_tree(store), whole);
      fs::remove_all(store);
    }
  }
  EXPECT_EQ(kills, 50);
  EXPECT_GT(resumed, 3);
}

TEST_F(StorePack, OfTwoAtOnceOneRefuses) {
  const std::string store = temp_ / "x.sluice";
  int go[2], ready[2];
  ASSERT_EQ(::pipe(go), 0);
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = in_child([&] {
    PackOptions options = tiny_options("zstd");
    bool waited = false;
    options.on_progress = [&](const PackProgress& progress) {
      if (waited || progress.done < progress.total / 2) return;
      waited = true;
      char c = 'r';
      (void)!::write(ready[1], &c, 1);
      (void)!::read(go[0], &c, 1);
    };
    pack_to(store, options);
    return 0;
  });
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_THAT(error_of([&] { pack_to(store, tiny_options("zstd")); }), HasSubstr("another process"));
  ASSERT_EQ(::write(go[1], &c, 1), 1);
  const int status = wait_for(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());
  EXPECT_THAT(error_of([&] { pack_to(store, tiny_options("zstd")); }), HasSubstr("exists already"));
  for (const int fd : {go[0], go[1], ready[0], ready[1]}) ::close(fd);
}

TEST_F(StorePack, AFileSizeLimitIsOneErrorAndCanBeResumed) {
  const std::string store = temp_ / "x.sluice";
  const pid_t child = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_of([&] { pack_to(store, tiny_options("zstd")); });
    return error.find("File too large") != std::string::npos &&
                   error.find(".bin at byte") != std::string::npos
               ? 0
               : 1;
  });
  const int status = wait_for(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(fs::exists(store + ".partial"));
  pack_to(store, tiny_options("zstd"));
  EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());

  const pid_t unpacker = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20000, 20000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_of([&] { unpack(store, temp_ / "back", {}); });
    return error.find("File too large") != std::string::npos && !fs::exists(temp_ / "back") &&
                   !fs::exists(temp_ / "back.partial")
               ? 0
               : 1;
  });
  EXPECT_EQ(wait_for(unpacker), 0);
}

TEST_F(StorePack, AFullDiskIsOneErrorAndCanBeResumed) {
  const std::string disk = temp_ / "disk";
  fs::create_directories(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=112k") != 0)
    GTEST_SKIP() << "may not mount a small file system here";
  const std::unique_ptr<const char, int (*)(const char*)> unmount(
      disk.c_str(), [](const char* path) { return ::umount2(path, MNT_DETACH); });
  const std::string first = error_of([&] { pack_to(disk + "/x.sluice", tiny_options("none")); });
  EXPECT_THAT(first, HasSubstr("not enough free space"));  // told before anything is written
  fs::remove_all(disk + "/x.sluice.partial");

  // Space that is there at first and then is not.
  PackOptions options = tiny_options("none");
  options.on_progress = [&, taken = false](const PackProgress& progress) mutable {
    if (taken || progress.done * 10 < progress.total) return;
    taken = true;
    std::ofstream(disk + "/hog") << std::string(200000, 'x') << std::flush;
  };
  ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, "size=300k"), 0);
  const std::string second = error_of([&] { pack_to(disk + "/x.sluice", options); });
  EXPECT_THAT(second, HasSubstr("No space left"));
  EXPECT_THAT(second, HasSubstr(" at byte "));
  fs::remove(disk + "/hog");
  ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, "size=10m"), 0);
  pack_to(disk + "/x.sluice", tiny_options("none"));
  EXPECT_TRUE(verify(disk + "/x.sluice", {.depth = VerifyDepth::kFull}).ok());

  const std::string tight = fmt::format("size={}", (fs::space(disk).capacity - fs::space(disk).free) + 50000);
  ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, tight.c_str()), 0);
  EXPECT_THAT(error_of([&] { unpack(disk + "/x.sluice", disk + "/back", {}); }), HasSubstr("space"));
  EXPECT_FALSE(fs::exists(disk + "/back.partial"));
}

TEST_F(StorePack, WhatVanishesIsOneError) {
  // The source changes while it is packed.
  PackOptions options = tiny_options("zstd");
  options.on_progress = [&, done = false](const PackProgress& progress) mutable {
    if (done || progress.done * 2 < progress.total) return;
    done = true;
    std::ofstream(source_ + "/config.json", std::ios::app) << " ";
  };
  EXPECT_THAT(error_of([&] { pack_to(temp_ / "x.sluice", options); }),
              HasSubstr("changed while it was packed"));
  EXPECT_FALSE(fs::exists(temp_ / "x.sluice"));

  // The place where it is written goes away.
  options.on_progress = [&, done = false](const PackProgress& progress) mutable {
    if (done || progress.done * 2 < progress.total) return;
    done = true;
    fs::remove_all(temp_ / "y.sluice.partial");
  };
  EXPECT_NE(error_of([&] { pack_to(temp_ / "y.sluice", options); }), "no error");
  EXPECT_FALSE(fs::exists(temp_ / "y.sluice"));
}

TEST_F(StorePack, AnotherDecoderReadsTheSame) {
  if (run("python3 --version").code != 0)
    GTEST_SKIP() << "python3 is not installed: the second decoder did not run";
  const bool has_zstd = run("zstd --version").code == 0;
  const std::string reader = "python3 '" SLUICE_SOURCE_DIR "/tools/store_reader.py' ";
  for (const char* codec : {"none", "lz4", "zstd", "native"}) {
    if (codec == std::string("zstd") && !has_zstd) {
      std::fprintf(stderr,
                   "the zstd command is not installed: the second decoder did not read zstd chunks\n");
      continue;
    }
    const std::string store = temp_ / fmt::format("{}.sluice", codec);
    pack_to(store, tiny_options(codec));
    const Outcome check = run(reader + quoted(store) + " --check");
    EXPECT_EQ(check.code, 0) << check.err;
    EXPECT_THAT(check.out, HasSubstr("6 files ok"));
    const Outcome tensor = run(reader + quoted(store) + " --tensor layers.1.experts.2.down");
    for (const TestTensor& wanted : tiny_tensors(model_)) {
      if (wanted.name == "layers.1.experts.2.down") {
        EXPECT_EQ(tensor.out, wanted.bytes);
      }
    }
  }
}

// The numbers that a reader makes of the slices, written from the page, are those that the codec makes.
TEST_F(StorePack, AnotherDecoderReadsTheSameSlices) {
  if (run("python3 --version").code != 0)
    GTEST_SKIP() << "python3 is not installed: the second decoder did not run";
  const std::string reader = "python3 '" SLUICE_SOURCE_DIR "/tools/store_reader.py' ";
  const TinyModel model{.layers = 1, .experts = 2, .hidden = 70, .width = 33};
  write_tiny_model(temp_ / "sliced", model);
  const auto floats = [](const std::string& bytes) {
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), 4 * values.size());
    return values;
  };
  for (const codec::SliceBits bits : codec::kStoredSliceBits) {
    PackOptions options = tiny_options("native");
    options.slices = bits;
    options.dense = DenseWeights::kInt8;
    const std::string store = temp_ / fmt::format("{}.sluice", bits.high);
    pack(temp_ / "sliced", store, tiny_plan(model), options);
    const auto checkpoint = open_checkpoint(store);
    const auto read = [&](const Extent& extent) {
      const std::string file = read_file(checkpoint->weight_files()[extent.file]);
      const auto* const at = reinterpret_cast<const std::byte*>(file.data()) + extent.offset;
      return std::vector<std::byte>(at, at + extent.length);
    };
    for (const char* name : {"layers.0.experts.1.down", "layers.0.experts.0.up"}) {
      const StoredPiece piece = checkpoint->locate(checkpoint->pieces_of(name).at(0));
      const codec::SlicedShape shape{piece.matrix, bits};
      const std::vector<std::byte> msb = read(piece.msb), lsb = read(piece.lsb);
      for (const codec::SliceView view : {codec::SliceView::kHigh, codec::SliceView::kLow}) {
        const Outcome other = run(fmt::format("{}{} --tensor {} --view {}", reader, quoted(store), name,
                                              view == codec::SliceView::kHigh ? "high" : "low"));
        ASSERT_EQ(other.code, 0) << other.err;
        const std::vector<float> found = floats(other.out);
        ASSERT_EQ(found.size(), shape.rows * shape.columns);
        std::vector<float> row_values(shape.columns);
        for (std::uint64_t row = 0; row < shape.rows; ++row) {
          codec::dequantise_row(codec::sliced_view(shape, msb, lsb), view, row, row_values);
          for (std::uint64_t c = 0; c < shape.columns; ++c)
            ASSERT_EQ(found[row * shape.columns + c], row_values[c]) << name << " " << row << ", " << c;
        }
      }
    }
    const StoredPiece dense = checkpoint->locate(checkpoint->pieces_of("embed.weight").at(0));
    ASSERT_EQ(dense.encoding, Encoding::kInt8);
    const codec::Int8Shape shape{dense.matrix};
    const Outcome other = run(reader + quoted(store) + " --tensor embed.weight --view high");
    const std::vector<float> found = floats(other.out);
    ASSERT_EQ(found.size(), shape.rows * shape.columns) << other.err;
    const std::vector<std::byte> matrix = read(dense.int8);
    std::vector<float> row_values(shape.columns);
    for (std::uint64_t row = 0; row < shape.rows; ++row) {
      codec::dequantise_int8_row(matrix, shape, row, row_values);
      ASSERT_TRUE(std::equal(row_values.begin(), row_values.end(),
                             found.begin() + static_cast<std::ptrdiff_t>(row * shape.columns)))
          << row;
    }
  }
}

// ---- the program

class StoreProgram : public ::testing::Test {
 protected:
  const TempDirectory temp_;
  const std::string model_ = SLUICE_SOURCE_DIR "/tests/golden/models/qwen2_moe_a";
};

TEST_F(StoreProgram, PacksVerifiesAndUnpacksGoldenModels) {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(SLUICE_SOURCE_DIR "/tests/golden/models")) {
    const std::string source = entry.path().string();
    if (!fs::exists(source + "/model.safetensors") || !source.ends_with("_a")) continue;
    ++models;
    const std::string store = temp_ / "m.sluice", back = temp_ / "back";
    const Outcome packed = sluice(fmt::format("pack '{}' -o '{}' --json --quiet", source, store));
    ASSERT_EQ(packed.code, 0) << source << ": " << packed.err;
    EXPECT_GT(nlohmann::json::parse(packed.out)["experts"], 0);
    const Outcome verified = sluice(fmt::format("verify '{}' --full --json --quiet", store));
    ASSERT_EQ(verified.code, 0) << verified.err;
    EXPECT_EQ(nlohmann::json::parse(verified.out)["ok"], true);
    ASSERT_EQ(sluice(fmt::format("unpack '{}' -o '{}'", store, back)).code, 0);
    EXPECT_EQ(read_tree(source), read_tree(back));
    fs::remove_all(store);
    fs::remove_all(back);
  }
  EXPECT_GT(models, 3);
}

TEST_F(StoreProgram, PacksSlicesAndSaysWhatCannotBeDoneWithThem) {
  for (const char* slices : {"8/4", "6/3", "4/2"}) {
    const std::string store = temp_ / "s.sluice";
    const Outcome packed = sluice(
        fmt::format("pack '{}' -o '{}' --slices {} --dense int8 --json --quiet", model_, store, slices));
    ASSERT_EQ(packed.code, 0) << packed.err;
    const nlohmann::json told = nlohmann::json::parse(packed.out);
    EXPECT_EQ(told["family"], "sliced");
    EXPECT_EQ(told["slices"], slices);
    EXPECT_EQ(sluice(fmt::format("verify '{}' --full --quiet", store)).code, 0);
    const nlohmann::json found = nlohmann::json::parse(sluice(fmt::format("inspect '{}' --json", store)).out);
    EXPECT_EQ(found["family"], "sliced");
    EXPECT_EQ(fmt::format("{}/{}", found["slices"]["high"].get<int>(), found["slices"]["low"].get<int>()),
              slices);
    EXPECT_GT(found["slices"]["msb_bytes"], found["slices"]["lsb_bytes"]);
    EXPECT_GE(found["experts"]["bytes"].get<std::uint64_t>(),
              found["slices"]["msb_bytes"].get<std::uint64_t>() +
                  found["slices"]["lsb_bytes"].get<std::uint64_t>());
    EXPECT_TRUE(found["experts"]["exponent_entropy_bits"].is_null());
    EXPECT_THAT(sluice(fmt::format("inspect '{}'", store)).out,
                HasSubstr(fmt::format("slices of {} bits", slices)));
    const Outcome unpacked = sluice(fmt::format("unpack '{}' -o '{}'", store, temp_ / "back"));
    EXPECT_EQ(unpacked.code, 1);
    EXPECT_THAT(unpacked.err, HasSubstr("cannot be unpacked"));
    for (const char* command : {"run", "forward"}) {
      const Outcome computed = sluice(
          fmt::format("{} '{}' --tokens 1,2 {}", command, store,
                      command == std::string("run") ? "-n 1" : fmt::format("--out {}", temp_ / "l.npy")));
      EXPECT_EQ(computed.code, 2);
      EXPECT_THAT(computed.err, HasSubstr("--precision high, low or dbsc, --preset slicemoe, or --max-loss"));
      EXPECT_EQ(std::count(computed.err.begin(), computed.err.end(), '\n'), 1) << computed.err;
    }
    for (const char* command : {"plan", "profile"}) {
      const Outcome refused = sluice(fmt::format("{} '{}'", command, store));
      EXPECT_EQ(refused.code, 1);
      EXPECT_THAT(refused.err, HasSubstr("family sliced"));
    }
    fs::remove_all(store);
  }
  for (const auto& [flags, words] :
       std::vector<std::pair<std::string, std::string>>{{"--slices 8/5", "8/4, 6/3, 4/2"},
                                                        {"--dense int8", "--slices"},
                                                        {"--slices 8/4 --dense int4", "int8"}}) {
    const Outcome refused = sluice(fmt::format("pack '{}' -o '{}' {}", model_, temp_ / "s.sluice", flags));
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_THAT(refused.err, HasSubstr(words));
  }
}

TEST_F(StoreProgram, QuantisesCopiesThatCanBeRun) {
  const auto logits = [&](const std::string& model) {
    const std::string out = temp_ / "logits.npy";
    const Outcome outcome =
        sluice(fmt::format("forward '{}' --tokens 1,2,3 --math f32 --out '{}' --quiet", model, out));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string bytes = read_file(out).substr(128);
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), 4 * values.size());
    fs::remove(out);
    return values;
  };
  const std::vector<float> exact = logits(model_);
  double before = 0;
  for (const char* quantiser : {"asym_high", "amat", "asym_keep_zero"}) {  // ever worse
    const std::string copy = temp_ / quantiser;
    const Outcome outcome = sluice(
        fmt::format("quantise '{}' -o '{}' --quantiser {} --slices 8/4 --json", model_, copy, quantiser));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["quantiser"], quantiser);
    const std::vector<float> rounded = logits(copy);
    ASSERT_EQ(rounded.size(), exact.size());
    double error = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) error += std::fabs(rounded[i] - exact[i]);
    EXPECT_GT(error, 2 * before) << quantiser;
    before = error;
  }
  const Outcome unknown = sluice(fmt::format("quantise '{}' -o '{}' --quantiser best", model_, temp_ / "x"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("amat_center"));
}

TEST_F(StoreProgram, AHubCacheIsRestoredAsFiles) {
  const std::string snapshot = temp_ / "hub/snapshots/abc";
  fs::create_directories(snapshot);
  int blob = 0;
  for (const auto& [name, content] : read_tree(model_)) {
    write_file(temp_ / fmt::format("hub/blobs/{}", blob), content);
    fs::create_symlink(fmt::format("../../blobs/{}", blob++), fmt::format("{}/{}", snapshot, name));
  }
  write_file(snapshot + "/pytorch_model.bin", "the same weights once more");
  const std::string store = temp_ / "m.sluice";
  const Outcome refused = sluice(fmt::format("pack '{}' -o '{}'", snapshot, store));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--exclude 'pytorch_model.bin'"));
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --exclude '*.bin'", snapshot, store)).code, 0);
  ASSERT_EQ(sluice(fmt::format("unpack '{}' -o '{}'", store, temp_ / "back")).code, 0);
  EXPECT_EQ(read_tree(model_), read_tree(temp_ / "back"));
  for (const auto& entry : fs::directory_iterator(temp_ / "back")) EXPECT_FALSE(entry.is_symlink());
}

TEST_F(StoreProgram, VerifyReportsDamageAsJsonAndExitsWith1) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  std::string bytes = read_file(store + "/dense.bin");
  bytes[5] ^= 1;
  write_file(store + "/dense.bin", bytes);
  write_file(store + "/stray", "");
  const Outcome outcome = sluice(fmt::format("verify '{}' --json", store));
  EXPECT_EQ(outcome.code, 1);
  const nlohmann::json report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["errors"].size(), 2u);
  EXPECT_EQ(report["errors"][0]["file"], "dense.bin");
  EXPECT_EQ(report["errors"][0]["offset"], 0);
  EXPECT_NE(report["errors"][0]["expected"], report["errors"][0]["found"]);
  EXPECT_EQ(report["errors"][0]["message"], "the checksum of a part is wrong");
  EXPECT_EQ(report["errors"][0]["fix"], "copy the store again, or pack the model again");
  EXPECT_EQ(report["errors"][1]["fix"], "remove it");
  const Outcome plain = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.err, HasSubstr("dense.bin at byte 0: the checksum of a part is wrong; expected XXH3 "));
  EXPECT_THAT(plain.err, HasSubstr("the store is damaged; copy it again, or pack the model again\n"));
}

TEST_F(StoreProgram, VerifySaysWhatTheErrorsMeanForTheStore) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  write_file(store + "/stray", "");
  const Outcome stray = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(stray.code, 1);
  EXPECT_THAT(stray.err, HasSubstr("stray at byte 0: a file that does not belong to the store; remove it\n"));
  EXPECT_THAT(stray.err, HasSubstr("what was packed is sound"));
  fs::remove(store + "/stray");
  std::string manifest = read_file(store + "/manifest.json");
  manifest[manifest.find("\"version\":") + 10] = '9';
  write_file(store + "/manifest.json", manifest);
  const Outcome other = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("the store has another format version; expected 1, found 9; use the version"));
  EXPECT_THAT(other.err, HasSubstr("cannot be read by this version of Sluice, or it is damaged"));
}

// What cannot be done with a store is not advised.
TEST_F(StoreProgram, AStoreInPlaceOfADirectoryGetsAdviceForItsFamily) {
  const std::string split = temp_ / "m.sluice", sliced = temp_ / "s.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, split)).code, 0);
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --slices 8/4 --quiet", model_, sliced)).code, 0);
  for (const char* command : {"pack", "quantise"}) {
    const Outcome of_split = sluice(fmt::format("{} '{}' -o '{}'", command, split, temp_ / "other"));
    EXPECT_EQ(of_split.code, 1);
    EXPECT_THAT(of_split.err, HasSubstr("this is a packed store; expected the directory of a model"));
    EXPECT_THAT(of_split.err, HasSubstr("or restore that: sluice unpack"));
    const Outcome of_sliced = sluice(fmt::format("{} '{}' -o '{}'", command, sliced, temp_ / "other"));
    EXPECT_EQ(of_sliced.code, 1);
    EXPECT_THAT(of_sliced.err, HasSubstr("its experts are rounded, and it cannot be unpacked"));
    EXPECT_EQ(of_sliced.err.find("sluice unpack"), std::string::npos) << of_sliced.err;
  }
}

TEST_F(StoreProgram, AWeightWithoutAValueGetsTheAdviceOfItsCommand) {
  const std::string model = temp_ / "nan", name = "model.layers.0.mlp.experts.0.up_proj.weight";
  fs::copy(model_, model, fs::copy_options::recursive);
  const auto checkpoint = open_checkpoint(model);
  const Extent place = checkpoint->locate({name, 0, checkpoint->find(name)->elements()}).raw;
  std::string weights = read_file(checkpoint->weight_files()[place.file]);
  weights.replace(place.offset + 4, 2, "\xc0\x7f");  // NaN in BF16, little-endian
  write_file(checkpoint->weight_files()[place.file], weights);
  const Outcome packed = sluice(fmt::format("pack '{}' -o '{}' --slices 8/4", model, temp_ / "x.sluice"));
  EXPECT_EQ(packed.code, 1);
  EXPECT_THAT(packed.err,
              HasSubstr("found NaN; download the file again, or pack the model without --slices"));
  EXPECT_THAT(packed.err, HasSubstr(name));
  const Outcome rounded = sluice(fmt::format("quantise '{}' -o '{}'", model, temp_ / "x"));
  EXPECT_EQ(rounded.code, 1);
  EXPECT_THAT(rounded.err, HasSubstr("found NaN; download the file again"));
  EXPECT_EQ(rounded.err.find("--slices"), std::string::npos) << rounded.err;
}

TEST_F(StoreProgram, AConfigurationThatAStoreLacksIsNotToBeDownloadedBesideWeights) {
  const TinyModel tiny;
  write_tiny_model(temp_ / "source", tiny);
  fs::remove(temp_ / "source/config.json");
  pack(temp_ / "source", temp_ / "m.sluice", tiny_plan(tiny), tiny_options("zstd"));
  const Outcome of_store = sluice(fmt::format("inspect '{}'", temp_ / "m.sluice"));
  EXPECT_EQ(of_store.code, 1);
  EXPECT_THAT(of_store.err, HasSubstr("config.json is missing"));
  EXPECT_THAT(of_store.err, HasSubstr("; pack the model again, from a directory that has it\n"));
  EXPECT_THAT(sluice(fmt::format("inspect '{}'", temp_ / "source")).err,
              HasSubstr("; download it beside the weights\n"));
}

TEST_F(StoreProgram, UnpackHasTheSameLeastMemoryAsPack) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  for (const std::string& command : {fmt::format("unpack '{}' -o '{}'", store, temp_ / "back"),
                                     fmt::format("pack '{}' -o '{}'", model_, temp_ / "x.sluice")}) {
    const Outcome refused = sluice(command + " --memory 1KiB");
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--memory: too little memory to "));
    EXPECT_THAT(refused.err, HasSubstr("expected 64.00 MiB or more, found 1.00 KiB; give more"));
    EXPECT_EQ(sluice(command + " --memory 64MiB --quiet").code, 0);
  }
}

TEST_F(StoreProgram, RefusesBadArguments) {
  const auto pack_with = [&](const std::string& flags) {
    return sluice(fmt::format("pack '{}' -o '{}' {}", model_, temp_ / "m.sluice", flags));
  };
  EXPECT_EQ(pack_with("--chunks 0").code, 2);
  EXPECT_EQ(pack_with("--chunks 257").code, 2);
  EXPECT_EQ(pack_with("--level 99").code, 2);
  EXPECT_EQ(pack_with("--codec brotli").code, 2);
  const Outcome native = pack_with("--codec native --level 1");
  EXPECT_EQ(native.code, 2);
  EXPECT_THAT(native.err, HasSubstr("native has no levels"));
  EXPECT_TRUE(fs::is_empty(temp_.path()));
  ASSERT_EQ(pack_with("--quiet").code, 0);
  EXPECT_THAT(pack_with("").err, HasSubstr("exists already"));
  EXPECT_THAT(sluice(fmt::format("pack '{}' -o '{}'", temp_ / "m.sluice", temp_ / "n.sluice")).err,
              HasSubstr("this is a packed store"));
  const Outcome nowhere = sluice(fmt::format("verify '{}'", temp_ / "nowhere"));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("no such store"));
}

TEST_F(StoreProgram, CtrlCKeepsWhatIsPackedAndSaysSo) {
  // Slow enough to be caught at work: a level at which zstd takes its time.
  const std::string source = temp_ / "slow", store = temp_ / "m.sluice";
  fs::copy(SLUICE_SOURCE_DIR "/models/fable-moe-18m", source, fs::copy_options::recursive);
  const std::string flags = "--codec zstd --level 15 --threads 1";
  const std::string command = fmt::format("exec '{}' pack '{}' -o '{}' {} 2>'{}'", SLUICE_PROGRAM, source,
                                          store, flags, temp_ / "err");
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_TRUE(wait_until([&] {
    return fs::exists(store + ".partial/dense.bin") && fs::file_size(store + ".partial/dense.bin") > 0;
  }));
  ::kill(child, SIGINT);
  const int status = wait_for(child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 130) << "it was finished before the signal came";
  EXPECT_THAT(read_file(temp_ / "err"), HasSubstr("run the same command again"));
  EXPECT_FALSE(fs::exists(store));
  EXPECT_TRUE(fs::exists(store + ".partial/journal"));
  const Outcome again = sluice(fmt::format("pack '{}' -o '{}' {} --json", source, store, flags));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_GT(nlohmann::json::parse(again.out)["resumed_bytes"], 0);
  EXPECT_EQ(sluice(fmt::format("verify '{}' --full", store)).code, 0);
}

}  // namespace
}  // namespace sluice::store
