// Settings have one name each: a flag is spelled in base/setting_names.cc and nowhere else in src/ and apps/,
// except in tests and in the examples of a command's help.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_text.h"
#include "base/setting.h"
#include "command.h"
#include "engine/plan/options.h"
#include "source_text.h"

namespace {

namespace fs = std::filesystem;
using sluice::testing::each_source;
using sluice::testing::is_source;
using sluice::testing::skip_literal;

// What people read of a source: its comments and its string literals, one a line, without the arguments of
// footer(…) and without the literal that is named kExamples: those are help.
std::vector<std::string> texts_of(const std::string& source) {
  std::vector<std::string> texts;
  const auto of_examples = [&](std::size_t at) {
    return std::string_view(source).substr(0, at).ends_with("kExamples = R");
  };
  int depth = 0, footer = 0;  // parentheses around; `footer`: those around the arguments of a footer
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t literal = skip_literal(source, at);
    if (literal > at) {
      if (footer == 0 && !of_examples(at)) texts.push_back(source.substr(at, literal - at));
      at = literal;
    } else if (source.compare(at, 2, "//") == 0) {
      const std::size_t end = std::min(source.size(), source.find('\n', at));
      texts.push_back(source.substr(at, end - at));
      at = end;
    } else {
      depth += source[at] == '(';
      if (source.compare(at, 7, "footer(") == 0 && footer == 0) footer = depth + 1;
      if (source[at] == ')' && depth-- == footer) footer = 0;
      ++at;
    }
  }
  return texts;
}

// Flags in a text: all with two dashes, and with one dash those that a setting has.
std::vector<std::string> flags_in(const std::string& text) {
  std::string letters;
  for (const sluice::SettingName& name : sluice::setting_names())
    if (name.flags.size() > 2 && name.flags[2] == ',') letters += name.flags[1];
  static const std::regex pattern("(^|[^-\\w])(--[a-z][-a-z0-9]*|-[" + letters + "](?![-\\w]))");
  std::vector<std::string> flags;
  for (std::sregex_iterator found(text.begin(), text.end(), pattern), end; found != end; ++found) {
    const std::string before = text.substr(0, static_cast<std::size_t>(found->position(2)));
    if (!before.ends_with("ulimit ")) flags.push_back((*found)[2]);
  }
  return flags;
}

bool is_checked(const fs::path& path) {
  const std::string name = path.filename().string(), stem = path.stem().string();
  if (!is_source(path)) return false;
  for (const char* ending : {"_test", "_fuzz", "_bench", "_fixture", "testing"})
    if (stem.ends_with(ending)) return false;
  return name != "setting_names.cc";
}

TEST(Settings, FlagsAreFoundInTextsAndCommentsOfASource) {
  const std::string source =
      "f(\"raise --memory, or -c\"); --full; // the value of `--io`\n"
      "g(\"a-c --\" \"x\"); command.footer(\"sluice run (x) \" + y(1) + \" --json\"); h(\"-n\");\n"
      "kExamples = R\"(--seed)\"; 'x'; \"ulimit -n\"";
  std::vector<std::string> found;
  for (const std::string& text : texts_of(source))
    for (const std::string& flag : flags_in(text)) found.push_back(flag);
  EXPECT_EQ(found, (std::vector<std::string>{"--memory", "-c", "--io", "-n"}));
}

TEST(Settings, SourcesOfEveryKindAreChecked) {
  for (const char* name : {"a.h", "a.cc", "a_cuda.cu", "a.cuh"}) EXPECT_TRUE(is_checked(name)) << name;
  for (const char* name : {"a_test.cc", "setting_names.cc", "a.md", "a.json"})
    EXPECT_FALSE(is_checked(name)) << name;
}

TEST(Settings, FlagsAreSpelledInOnePlace) {
  const std::size_t files =
      each_source({"src", "apps"}, is_checked, [](const std::string& path, const std::string& source) {
        for (const std::string& text : texts_of(source))
          for (const std::string& flag : flags_in(text))
            ADD_FAILURE() << path << " spells " << flag << "; name its setting (base/setting.h): " << text;
      });
  EXPECT_GT(files, 400u);
}

// What the program would be if the table gave this setting other names.
sluice::SettingNames renamed(sluice::Setting setting, std::string_view flags, std::string_view field) {
  sluice::SettingNames names = sluice::setting_names();
  names[setting.index()] = {setting, flags, field};
  return names;
}

std::string error_of(const std::function<void()>& work, sluice::NamedBy by,
                     const sluice::SettingNames& names = sluice::setting_names()) {
  try {
    work();
  } catch (const sluice::Error& error) {
    return sluice::error_text(error, by, names);
  }
  return "no error";
}

TEST(Settings, OneRowRenamesASettingInHelpInErrorsAndInJson) {
  using sluice::NamedBy;
  using sluice::Setting;
  const sluice::SettingNames names = renamed(Setting::kMath, "-a,--arithmetic", "arithmetic_form");
  sluice::app::Command usual("sluice", "test"), other("sluice", "test", names);
  for (sluice::app::Command* program : {&usual, &other}) sluice::app::add_run(*program);
  const std::string before = usual.help_of("run", 10'000), after = other.help_of("run", 10'000);
  const auto count = [](const std::string& text, std::string_view word) {
    std::size_t times = 0;
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++times;
    return times;
  };
  // The flag itself, and the text of another that mentions it.
  EXPECT_EQ(count(before, "--math"), 2u) << before;
  EXPECT_EQ(count(before, "--arithmetic"), 0u);
  EXPECT_EQ(count(after, "--math"), 0u) << after;
  EXPECT_EQ(count(after, "--arithmetic"), 2u);
  EXPECT_EQ(count(after, "-a,"), 1u);

  // The command line reads what the table says, and nothing else.
  EXPECT_EQ(error_of(
                [&] {
                  other.run({"run", "MODEL", "--math", "f32"});
                },
                NamedBy::kFlag, names),
            "run: unknown flag --math; expected a flag that `sluice run --help` lists; leave it out");

  const auto parse = [] { sluice::engine::parse_math("x"); };
  EXPECT_EQ(error_of(parse, NamedBy::kFlag),
            "--math: unknown arithmetic; expected auto or f32, found \"x\"; leave --math out for auto");
  EXPECT_EQ(
      error_of(parse, NamedBy::kFlag, names),
      "--arithmetic: unknown arithmetic; expected auto or f32, found \"x\"; leave --arithmetic out for auto");
  EXPECT_EQ(error_of(parse, NamedBy::kField),
            "math: unknown arithmetic; expected auto or f32, found \"x\"; leave math out for auto");
  EXPECT_EQ(
      error_of(parse, NamedBy::kField, names),
      "arithmetic_form: unknown arithmetic; expected auto or f32, found \"x\"; leave arithmetic_form out for "
      "auto");
}

}  // namespace
