#include "base/files/temporary_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files/scratch_directory.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryDirectory, GoesAwayWithAllThatIsInItAndNothingElse) {
  const testing::ScratchDirectory parent;
  const std::string own = parent.write("temporary/own", "a user's");
  std::optional<TemporaryDirectory> one(parent.path());
  const TemporaryDirectory other(parent.path());
  EXPECT_NE(one->path(), other.path());
  EXPECT_TRUE(one->path().starts_with(parent.file("temporary-"))) << one->path();
  EXPECT_TRUE(fs::is_directory(one->path()));
  EXPECT_EQ(one->file("a"), one->path() + "/a");
  fs::create_directories(one->file("a/b"));
  parent.write(fs::path(one->file("a/b/c")).lexically_relative(parent.path()).string(), "content");
  const std::string path = one->path();
  one.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(other.path()));
  EXPECT_TRUE(fs::exists(own));
}

TEST(TemporaryDirectory, SaysWhereItCannotBeMade) {
  const testing::ScratchDirectory parent;
  try {
    const TemporaryDirectory directory(parent.file("none"), "store");
    FAIL() << directory.path();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_EQ(error.where(), parent.file("none/store-XXXXXX"));
  }
}

}  // namespace
}  // namespace sluice
