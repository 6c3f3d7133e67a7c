#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

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

TEST(Error, NeverSteersTheTerminalNorForgesALine) {
  using namespace std::string_view_literals;
  const auto what = [](std::string_view text) { return std::string(Error(ErrorKind::kUsage, text).what()); };
  EXPECT_EQ(what("a\0b"sv), "a\\x00b");
  EXPECT_EQ(what("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(what("a\nsluice: b\r\t\x7f"), "a\\x0asluice: b\\x0d\\x09\\x7f");
  EXPECT_EQ(what("a\xc2\x9b"
                 "b"),
            "a\\xc2\\x9b"
            "b");                                                 // the control character CSI
  EXPECT_EQ(what("\xe2\x80\xae"), "\\xe2\\x80\\xae");             // right to left from here
  EXPECT_EQ(what("\xff\xc3(\xe2\x82"), "\\xff\\xc3(\\xe2\\x82");  // not UTF-8
  EXPECT_EQ(what("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80");
  EXPECT_EQ(what("Größe …, 鯨, 🐋"), "Größe …, 鯨, 🐋");

  const Error e = Error(ErrorKind::kUsage, "m").in("i\n").expected("e\n").found("f\n").fix("x\n");
  EXPECT_STREQ(e.what(), "i\\x0a: m; expected e\\x0a, found f\\x0a; x\\x0a");
  EXPECT_EQ(e.where(), "i\\x0a");
  EXPECT_EQ(Error(ErrorKind::kUsage, "m").found(e.found_text()).found_text(), e.found_text());
}

TEST(Error, LeavesOutTheMiddleOfALongPart) {
  const std::string name = "begin" + std::string(100'000, 'x') + "end";
  const Error e = Error(ErrorKind::kUsage, name).in(name).expected(name).found(name).fix(name);
  EXPECT_EQ(e.where(), "begin" + std::string(243, 'x') + "…" + std::string(245, 'x') + "end");
  for (const std::string& part : {e.message(), e.expected_text(), e.found_text()}) EXPECT_EQ(part, e.where());
  EXPECT_LT(std::string(e.what()).size(), 2600u);

  const std::string most(500, 'x');
  EXPECT_EQ(Error(ErrorKind::kUsage, most).message(), most);
  const Error escaped(ErrorKind::kUsage, "a" + std::string(1000, '\n'));
  EXPECT_TRUE(escaped.message().starts_with("a\\x0a")) << escaped.message();
  EXPECT_NE(escaped.message().find("\\x0a…\\x0a"), std::string::npos) << escaped.message();
  EXPECT_EQ(Error(ErrorKind::kUsage, escaped.message()).message(), escaped.message());
}

TEST(Error, OfTheSystemIsNotFoundOrIo) {
  EXPECT_EQ(io_error("open", "f", ENOENT).kind(), ErrorKind::kNotFound);
  EXPECT_EQ(io_error("open", "f", ENOTDIR).kind(), ErrorKind::kNotFound);
  const Error e = io_error("read", "f", EIO);
  EXPECT_EQ(e.kind(), ErrorKind::kIo);
  EXPECT_EQ(e.message(), "cannot be read");
  EXPECT_EQ(e.found_text(), "Input/output error");
}

TEST(Error, OfTheSystemSaysWhatToDo) {
  EXPECT_STREQ(io_error("open", "f", ENOENT).what(),
               "f: cannot be opened; expected a file that is there and may be read, found No such file or "
               "directory; check the name");
  EXPECT_STREQ(io_error("mkdir", "d/e", ENOENT).what(),
               "d/e: the directory cannot be made; expected a directory that is there, where you may write, "
               "found No such file or directory; make its directory first, or "
               "choose another place");
  EXPECT_STREQ(io_error("statvfs", "d", EACCES).what(),
               "d: the free space of its disk cannot be told; expected a file or directory that is there, "
               "found Permission denied; check the permissions of the "
               "file and of the directories that lead to it");
  EXPECT_STREQ(io_error("mmap", "f", ENODEV).what(),
               "f: mmap failed; expected a system that allows it, found No such device; check the file, its "
               "disk and its file system (kernel log)");
  for (const char* call : {"open", "create", "mkdir", "write"}) {
    for (int number = 1; number < 134; ++number) {
      const std::string text = io_error(call, "f", number).what();
      EXPECT_NE(text.find("; "), std::string::npos) << text;
    }
  }
  EXPECT_STREQ(io_error("open", "f", EACCES).fix("ask its owner").what(),
               "f: cannot be opened; expected a file that is there and may be read, found Permission denied; "
               "ask its owner");
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
