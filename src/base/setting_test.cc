#include "base/setting.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <string>

#include "base/error.h"
#include "base/error_text.h"

namespace sluice {
namespace {

using namespace std::string_literals;

SettingNames with_another_name(Setting setting, std::string_view flags, std::string_view field) {
  SettingNames names = setting_names();
  names[setting.index()] = {setting, flags, field};
  return names;
}

TEST(Setting, HasFlagsAndAFieldOfItsOwn) {
  std::set<std::string_view> flags, fields;
  for (const SettingName& name : setting_names()) {
    EXPECT_TRUE(flags.insert(name.flags).second) << name.flags;
    EXPECT_TRUE(fields.insert(name.field).second) << name.field;
    EXPECT_TRUE(name.has_flag(name.flag())) << name.flags;
    EXPECT_TRUE(name.flag().starts_with(name.short_in_text ? "-" : "--")) << name.flags;
    EXPECT_EQ(name.field.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), name.field.npos) << name.field;
  }
  EXPECT_EQ(flags.size(), kSettings);
}

TEST(Setting, OfTwoFlagsIsNamedByTheShortOrTheLong) {
  const SettingName context = name_of(Setting::kContext), threads = name_of(Setting::kThreads);
  EXPECT_EQ(context.flag(), "-c");
  EXPECT_EQ(threads.flag(), "--threads");
  EXPECT_TRUE(context.has_flag("--context"));
  EXPECT_TRUE(threads.has_flag("-t"));
  EXPECT_FALSE(threads.has_flag(""));
  EXPECT_FALSE(threads.has_flag("-t,--threads"));
  EXPECT_FALSE(name_of(Setting::kMemory).has_flag(""));
}

TEST(Setting, MarkStandsForTheNameThatATableHas) {
  const std::string text = "raise " + Setting::kTopK + ", or leave " + Setting::kMemory + " out";
  EXPECT_EQ(with_names(text), "raise --top-k, or leave --memory out");
  EXPECT_EQ(with_names(text, NamedBy::kField), "raise top_k, or leave memory out");
  const SettingNames names = with_another_name(Setting::kTopK, "-k,--best", "best_of");
  EXPECT_EQ(with_names(text, NamedBy::kFlag, names), "raise --best, or leave --memory out");
  EXPECT_EQ(with_names(text, NamedBy::kField, names), "raise best_of, or leave memory out");
}

TEST(Setting, EveryMarkIsReadBack) {
  for (const SettingName& name : setting_names()) {
    EXPECT_EQ(marked_setting(mark(name.setting)), name.setting);
    EXPECT_EQ(with_names(mark(name.setting)), name.flag());
    EXPECT_EQ(marked_setting(mark(name.setting) + "x"), std::nullopt);
  }
  const std::string begin(1, Setting::kMarkBegin), memory = mark(Setting::kMemory);
  const std::string unknown = memory.substr(0, memory.size() - 2) + "zz";
  for (const std::string& text : {""s, "--memory"s, begin, begin + begin, begin + "aa", begin + "aa\x1f",
                                  memory.substr(0, memory.size() - 1), memory.substr(1), unknown}) {
    EXPECT_EQ(marked_setting(text), std::nullopt) << text;
    EXPECT_EQ(leading_mark(text), "") << text;
    EXPECT_EQ(with_names(text), text);
  }
  EXPECT_EQ(leading_mark(memory + "x"), memory);
}

// Marks once were the index between two control characters, so that a path could be shown as a flag. What one
// process has for a mark is foreign text in another: each draws its own.
TEST(Setting, ForeignTextCannotHoldAMark) {
  for (std::size_t i = 0; i < kSettings; ++i) {
    const std::string letters = {static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
    EXPECT_EQ(
        io_error("open", "a\x1e" + letters + "\x1f.json", ENOENT).what(),
        "a\\x1e" + letters +
            "\\x1f.json: cannot be opened; expected a file that is there and may be read, found No such file or directory; check the name"s);
  }
  const auto mark_of_a_process = [] {
    const std::string command =
        "/proc/" + std::to_string(::getpid()) + "/exe --gtest_filter=Setting.MarkIsOneLine";
    std::FILE* const output = ::popen(command.c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
    EXPECT_EQ(::pclose(output), 0);
    const std::size_t begin = text.find(Setting::kMarkBegin);
    return begin == text.npos ? "none" : text.substr(begin, mark(Setting::kMemory).size());
  };
  const std::string first = mark_of_a_process(), second = mark_of_a_process();
  EXPECT_EQ(first[0], Setting::kMarkBegin);
  EXPECT_NE(first, second);
  EXPECT_EQ(with_names(first), first);
}

// The test above runs this one in processes of its own, to see their marks.
TEST(Setting, MarkIsOneLine) {
  EXPECT_EQ(mark(Setting::kMemory).find('\n'), std::string::npos);
  std::printf("%s\n", mark(Setting::kMemory).c_str());
}

TEST(Setting, ErrorNamesSettingsByFlagsAndForARequestByFields) {
  const SettingNames names = with_another_name(Setting::kMemory, "--ram", "ram_bytes");
  const Error error = Error(ErrorKind::kBudget, Setting::kChunk + " 9 is too large")
                          .in(Setting::kMemory)
                          .expected("a smaller " + Setting::kChunk)
                          .found(Setting::kContext + " 8")
                          .fix("raise " + Setting::kMemory);
  EXPECT_STREQ(error.what(),
               "--memory: --chunk 9 is too large; expected a smaller --chunk, found -c 8; raise --memory");
  EXPECT_EQ(error_text(error, NamedBy::kField),
            "memory: chunk 9 is too large; expected a smaller chunk, found context 8; raise memory");
  EXPECT_EQ(error_text(error, NamedBy::kFlag, names),
            "--ram: --chunk 9 is too large; expected a smaller --chunk, found -c 8; raise --ram");
  EXPECT_EQ(error_text(error, NamedBy::kField, names),
            "ram_bytes: chunk 9 is too large; expected a smaller chunk, found context 8; raise ram_bytes");
  EXPECT_EQ(marked_setting(error.where()), Setting::kMemory);
}

TEST(Setting, MarksThatNoSettingHasAreEscaped) {
  EXPECT_STREQ(Error(ErrorKind::kUsage, "a\x1ezz\x1f-\n" + Setting::kIo).what(), "a\\x1ezz\\x1f-\\x0a--io");
  EXPECT_STREQ(Error(ErrorKind::kUsage, "\x1e").what(), "\\x1e");
}

TEST(Setting, NamesArePutInBeforeALongTextIsCut) {
  const auto shown = [](const std::string& text) {
    return std::string(Error(ErrorKind::kUsage, text).what());
  };
  const std::string long_text(600, 'x'), flag = "--memory", most(500 - flag.size(), 'x');
  EXPECT_EQ(shown(most + Setting::kMemory), most + flag);
  for (const std::string& before : {std::string(), most, long_text})
    for (const std::string& after : {std::string(), std::string("y"), most, long_text})
      EXPECT_EQ(shown(before + Setting::kMemory + after), shown(before + flag + after));
}

TEST(Setting, PartsOfAnErrorKeepItsMarksInAnother) {
  const Error first = Error(ErrorKind::kUsage, "no").in(Setting::kIo).fix("leave " + Setting::kIo + " out");
  const Error second =
      Error(first.kind(), "zipmoe: " + first.message()).in(first.where()).fix(first.fix_text());
  EXPECT_STREQ(second.what(), "--io: zipmoe: no; leave --io out");
  EXPECT_EQ(error_text(second, NamedBy::kField), "io: zipmoe: no; leave io out");
}

}  // namespace
}  // namespace sluice
