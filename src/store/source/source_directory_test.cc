#include "store/source/source_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/error.h"
#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(const SourceDirectory& directory) {
  std::vector<std::string> list;
  list.reserve(directory.files.size());
  for (const SourceFile& file : directory.files) list.push_back(file.relative);
  return list;
}

std::string error_of(const std::string& path, const std::vector<std::string>& exclude = {}) {
  try {
    scan_directory(path, exclude, Depth::kTree);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SourceDirectory, FollowsLinksAndKeepsEverything) {
  const TempDirectory temp;
  write_file(temp / "hub/blobs/abc", "config");
  write_file(temp / "hub/more/deep/x", "y");
  fs::create_directories(temp / "hub/snapshots/1/empty/inner");
  fs::create_symlink("../../blobs/abc", temp / "hub/snapshots/1/config.json");
  fs::create_directory_symlink(temp / "hub/more", temp / "hub/snapshots/1/linked");
  write_file(temp / "hub/snapshots/1/.hidden", "");
  const SourceDirectory directory = scan_directory(temp / "hub/snapshots/1/", {}, Depth::kTree);
  EXPECT_THAT(names(directory), ElementsAre(".hidden", "config.json", "linked/deep/x"));
  EXPECT_THAT(directory.empty_directories, ElementsAre("empty/inner"));
  EXPECT_EQ(directory.find("config.json")->size, 6u);
  EXPECT_EQ(directory.find("config"), nullptr);
  EXPECT_THAT(names(scan_directory(temp / "hub/snapshots/1", {}, Depth::kTop)),
              ElementsAre(".hidden", "config.json"));
}

TEST(SourceDirectory, ExcludesByNamePathAndDirectory) {
  const TempDirectory temp;
  for (const char* name : {"a.bin", "sub/b.bin", "sub/c.txt", "original/deep/d.pth", "keep.txt"})
    write_file(temp / (std::string("m/") + name), "");
  const auto kept = [&](const std::vector<std::string>& exclude) {
    return names(scan_directory(temp / "m", exclude, Depth::kTree));
  };
  EXPECT_THAT(kept({"*.bin"}), ElementsAre("keep.txt", "original/deep/d.pth", "sub/c.txt"));
  EXPECT_THAT(kept({"original"}), ElementsAre("a.bin", "keep.txt", "sub/b.bin", "sub/c.txt"));
  EXPECT_THAT(kept({"sub/*.bin", "original/deep"}), ElementsAre("a.bin", "keep.txt", "sub/c.txt"));
  EXPECT_THAT(kept({"*/*"}), ElementsAre("a.bin", "keep.txt"));
}

TEST(SourceDirectory, APatternThatLeavesNothingOutIsAnErrorThatNamesFiles) {
  const TempDirectory temp;
  for (const char* name : {"a.bin", "sub/b.bin", "original/deep/d.pth"})
    write_file(temp / (std::string("m/") + name), "");
  const auto error = [&](const std::vector<std::string>& exclude) -> std::string {
    try {
      check_patterns(temp / "m/", exclude);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error({}), "no error");
  // Each pattern excludes something, though one pattern could do for two.
  EXPECT_EQ(error({"*.bin", "a.*", "sub/*.bin", "original"}), "no error");
  EXPECT_THAT(error({"*.bin", "*.pt"}),
              AllOf(HasSubstr("--exclude"), HasSubstr("\"*.pt\""), HasSubstr("original/deep/d.pth")));
  EXPECT_THAT(error({"b.bin/"}), HasSubstr("a.bin, original/deep/d.pth, sub/b.bin"));
  for (int i = 0; i < 20; ++i) write_file(temp / ("m/many-" + std::to_string(i)), "");
  EXPECT_THAT(error({"*.pt"}), AllOf(HasSubstr("many-0, "), HasSubstr(", …"), Not(HasSubstr("many-9"))));
}

TEST(SourceDirectory, WhatCannotBeKeptIsAnError) {
  const TempDirectory temp;
  EXPECT_THAT(error_of(temp / "nowhere"), HasSubstr("no such directory"));
  write_file(temp / "file", "");
  EXPECT_THAT(error_of(temp / "file"), HasSubstr("not a directory"));

  fs::create_directories(temp / "m");
  fs::create_symlink("missing", temp / "m/dangling");
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("leads nowhere"));
  EXPECT_EQ(error_of(temp / "m", {"dangling"}), "no error");
  EXPECT_NO_THROW(scan_directory(temp / "m", {}, Depth::kTop));
  fs::remove(temp / "m/dangling");

  fs::create_symlink("self", temp / "m/self");
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("back to itself"));
  fs::remove(temp / "m/self");

  fs::create_directories(temp / "m/a/b");
  fs::create_directory_symlink(temp / "m/a", temp / "m/a/b/up");
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("directory that contains it"));
  fs::remove(temp / "m/a/b/up");

  ASSERT_EQ(::mkfifo((temp / "m/pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("a fifo"));
  fs::remove(temp / "m/pipe");

  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = temp / "m/sock";
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("a socket"));
  fs::remove(name);

  fs::create_symlink("/dev/null", temp / "m/null");
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("a device"));
  fs::remove(temp / "m/null");

  write_file(temp / "m/\xff", "");
  EXPECT_THAT(error_of(temp / "m"), HasSubstr("not UTF-8"));
}

TEST(SourceDirectory, SafePathsStayInside) {
  for (const char* good : {"a", "a/b", "a b/.c", "..a/b..", "é"})
    EXPECT_TRUE(is_safe_relative_path(good)) << good;
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "\xff"})
    EXPECT_FALSE(is_safe_relative_path(bad)) << bad;
  EXPECT_FALSE(is_safe_relative_path(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace sluice::store
