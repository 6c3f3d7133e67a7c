// Packing under hard circumstances: killed, interrupted, out of space, two at once.
// src/store/pack/*_test.cc has the tests that one process can do.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/error_of.h"
#include "base/json/json.h"
#include "program.h"
#include "store/check/verify.h"
#include "store/pack/testing.h"
#include "store/pack/unpack.h"
#include "store/sidecar/sidecar.h"
#include "store/source/hand_gguf.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of store/pack/testing.h
using sluice::testing::error_of;
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

// Kills at 50 random moments, some of them in the run that resumes an earlier killed run.
TEST_F(StorePack, KilledAndRunAgainItGivesTheSameBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int reports = 0;
  PackOptions options = tiny_options("zstd");
  options.add_sidecars = [](const std::string& directory) {
    write_sidecar(directory, "beside", "test", {{"text", "what lies beside a store"}});
  };
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
        EXPECT_EQ(read_tree(store), whole);  // whole or absent
        fs::remove_all(store);
      } else if (random() % 2 == 0) {  // otherwise the next child continues, and may also be killed
        PackOptions go_on = tiny_options("zstd");
        go_on.add_sidecars = options.add_sidecars;
        const PackResult result = pack(source_, store, tiny_plan(model_), go_on);
        resumed += result.resumed_bytes > 0;
        ASSERT_EQ(read_tree(store), whole) << "kill " << kills;
        EXPECT_FALSE(fs::exists(partial));
        fs::remove_all(store);
      }
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      ASSERT_EQ(read_tree(store), whole);
      fs::remove_all(store);
    }
  }
  EXPECT_EQ(kills, 50);
  EXPECT_GT(resumed, 3);
}

// The same of a GGUF file, whose pieces have planes of their own in the journal.
TEST_F(StorePack, AGgufFileKilledAndRunAgainGivesTheSameBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  constexpr std::uint32_t kQ4K = 12, kQ80 = 8, kBf16 = 30;
  const HandFile hand{.tensors = {{"up", kQ4K, {8, 16, 512}},
                                  {"norm", 0, {77}},
                                  {"down", kBf16, {8, 32, 256}},
                                  {"head", kQ80, {40, 320}}},
                      .trailing = 9};
  write_file(temp_ / "m.gguf", hand.bytes());
  PackPlan plan{.architecture = "tiny", .experts = {}};
  for (std::uint32_t e = 0; e < 8; ++e)
    plan.experts.push_back({0, e, {{"up", e * 8192ull, 8192}, {"down", e * 8192ull, 8192}}});
  int reports = 0;
  PackOptions options = tiny_options("native");
  options.on_progress = [&](const PackProgress&) { ++reports; };
  pack(temp_ / "m.gguf", temp_ / "whole.sluice", plan, options);
  const auto whole = read_tree(temp_ / "whole.sluice");
  const std::string store = temp_ / "x.sluice";
  int resumed = 0;
  for (int kill = 0; kill < 25; ++kill) {
    const unsigned at_report = random() % static_cast<unsigned>(reports);
    const int status = wait_for(in_child([&] {
      unsigned seen = 0;
      options.on_progress = [&](const PackProgress&) {
        if (seen++ == at_report) ::kill(::getpid(), SIGKILL);
      };
      pack(temp_ / "m.gguf", store, plan, options);
      return 0;
    }));
    if (WIFSIGNALED(status) && !fs::exists(store))
      resumed += pack(temp_ / "m.gguf", store, plan, tiny_options("native")).resumed_bytes > 0;
    ASSERT_EQ(read_tree(store), whole) << "killed at report " << at_report;
    fs::remove_all(store);
  }
  EXPECT_GT(resumed, 1);
  pack(temp_ / "m.gguf", store, plan, tiny_options("native"));
  unpack(store, temp_ / "back", {});
  EXPECT_EQ(read_file(temp_ / "back/m.gguf"), hand.bytes());
}

// The program, killed as soon as the store has its name: what a run reads beside it is there.
TEST_F(StorePack, AStoreHasItsTokenizerFromItsFirstMomentOn) {
  const std::string store = temp_ / "m.sluice";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(SLUICE_PROGRAM, "sluice", "pack", SLUICE_SOURCE_DIR "/models/fable-moe-18m", "-o", store.c_str(),
            "-q", nullptr);
    ::_exit(127);
  }
  ASSERT_TRUE(wait_until([&] { return fs::exists(store); }));
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_TRUE(fs::exists(store + "/sidecar/tokenizer.bin"));
  EXPECT_EQ(program::run(fmt::format("verify '{}'", store)).code, 0);
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
  EXPECT_THAT(first, HasSubstr("not enough free space"));  // reported before anything is written
  fs::remove_all(disk + "/x.sluice.partial");

  // Space that is there at first and then is gone.
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
  // The source changes while it is being packed.
  PackOptions options = tiny_options("zstd");
  options.on_progress = [&, done = false](const PackProgress& progress) mutable {
    if (done || progress.done * 2 < progress.total) return;
    done = true;
    std::ofstream(source_ + "/config.json", std::ios::app) << " ";
  };
  EXPECT_THAT(error_of([&] { pack_to(temp_ / "x.sluice", options); }),
              HasSubstr("changed while it was packed"));
  EXPECT_FALSE(fs::exists(temp_ / "x.sluice"));

  // The target directory is removed during the work.
  options.on_progress = [&, done = false](const PackProgress& progress) mutable {
    if (done || progress.done * 2 < progress.total) return;
    done = true;
    fs::remove_all(temp_ / "y.sluice.partial");
  };
  EXPECT_NE(error_of([&] { pack_to(temp_ / "y.sluice", options); }), "no error");
  EXPECT_FALSE(fs::exists(temp_ / "y.sluice"));
}

// Another process removes written data: the pack reports it before the store gets its name, and leaves the
// data.
TEST_F(StorePack, WhatOthersCutIsOneErrorAndNothingIsPublished) {
  const std::string store = temp_ / "x.sluice", partial = store + ".partial";
  for (const char* name :
       {"dense.bin", "experts-00000.bin", "experts-00001.bin", "headers.bin", "files/config.json"}) {
    SCOPED_TRACE(name);
    const std::string file = partial + "/" + name;
    PackOptions options = tiny_options("zstd");
    options.on_progress = [&, done = false](const PackProgress&) mutable {
      if (done || !fs::exists(partial + "/experts-00001.bin") || fs::file_size(file) == 0) return;
      done = true;
      fs::resize_file(file, fs::file_size(file) / 2);
    };
    const std::string error = error_of([&] { pack_to(store, options); });
    EXPECT_THAT(error, HasSubstr(file + " at byte "));
    EXPECT_THAT(error, HasSubstr("something else has changed it: remove "));
    EXPECT_FALSE(fs::exists(store));
    EXPECT_FALSE(fs::exists(partial + "/manifest.json"));
    EXPECT_TRUE(fs::exists(partial + "/journal"));
    EXPECT_TRUE(fs::exists(file));
    // The next run writes the missing data, or refuses.
    if (error_of([&] { pack_to(store, tiny_options("zstd")); }) == "no error") {
      EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());
    }
    fs::remove_all(partial);
    fs::remove_all(store);
  }
}

TEST_F(StorePack, CtrlCKeepsWhatIsPackedAndSaysSo) {
  // Slow enough to be interrupted at work: a level at which zstd takes its time.
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
  const program::Outcome again =
      program::run(fmt::format("pack '{}' -o '{}' {} --json", source, store, flags));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_GT(Json::parse(again.out)["resumed_bytes"], 0);
  EXPECT_EQ(program::run(fmt::format("verify '{}' --full", store)).code, 0);
}

}  // namespace
}  // namespace sluice::store
