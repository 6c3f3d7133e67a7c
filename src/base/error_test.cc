#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace sluice {
namespace {

TEST(Error, TellsWhereWhatExpectedFoundAndWhatToDoOnOneLine) {
  const Error e = Error(ErrorKind::kInvalid, "header is too long")
                      .in("model.safetensors", 8)
                      .expected("at most 100")
                      .found("200")
                      .fix("download the file again");
  EXPECT_STREQ(e.what(),
               "model.safetensors at byte 8: header is too long; expected at most 100, found 200; download "
               "the file again");
  EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
  EXPECT_EQ(e.message(), "header is too long");
  EXPECT_EQ(e.where(), "model.safetensors");
  EXPECT_EQ(e.offset(), 8u);
  EXPECT_EQ(e.expected_text(), "at most 100");
  EXPECT_EQ(e.found_text(), "200");
}

TEST(Error, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no").what(), "no");
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no").in("-n").what(), "-n: no");
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no").found("x").what(), "no; found x");
  EXPECT_STREQ(Error(ErrorKind::kUsage, "no").fix("do").what(), "no; do");
}

TEST(Error, OfTheSystemIsNotFoundOrIo) {
  EXPECT_EQ(io_error("open", "f", ENOENT).kind(), ErrorKind::kNotFound);
  EXPECT_EQ(io_error("open", "f", ENOTDIR).kind(), ErrorKind::kNotFound);
  const Error e = io_error("read", "f", EIO);
  EXPECT_EQ(e.kind(), ErrorKind::kIo);
  EXPECT_EQ(e.message(), "read failed: Input/output error");
}

TEST(Error, OfTheSystemSaysWhatToDo) {
  EXPECT_STREQ(io_error("open", "f", ENOENT).what(),
               "f: open failed: No such file or directory; check the name");
  EXPECT_STREQ(
      io_error("mkdir", "d/e", ENOENT).what(),
      "d/e: mkdir failed: No such file or directory; make its directory first, or choose another place");
  for (const char* call : {"open", "create", "mkdir", "write"}) {
    for (int number = 1; number < 134; ++number) {
      const std::string text = io_error(call, "f", number).what();
      EXPECT_NE(text.find("; "), std::string::npos) << text;
    }
  }
  EXPECT_STREQ(io_error("open", "f", EACCES).fix("ask its owner").what(),
               "f: open failed: Permission denied; ask its owner");
}

TEST(ErrorDeathTest, AFailedCheckPrintsExpressionPlaceAndValues) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int x = 3;
  EXPECT_DEATH(SLUICE_CHECK(x == 4, "x is " + std::to_string(x)),
               "internal error: x == 4 is false at .*error_test.cc:.*: x is 3");
  SLUICE_CHECK(x == 3);
}

}  // namespace
}  // namespace sluice
