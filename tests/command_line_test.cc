// Promises of every command to scripts: exit codes, errors only on standard error, hints, and no partial
// output.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace {

using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;

Outcome sluice(const std::string& arguments) { return ::sluice::program::run(arguments); }

// One blank between words, wherever the text was broken.
std::string words_of(std::string text) {
  const auto spaces = [](char a, char b) { return std::isspace(a) && std::isspace(b); };
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(std::unique(text.begin(), text.end(), spaces), text.end());
  return text;
}

void expect_usage_error(const std::string& arguments, const std::string& words) {
  const Outcome outcome = sluice(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_TRUE(outcome.err.starts_with("sluice: ")) << outcome.err;
  EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
}

TEST(CommandLine, UsageErrorsExitWith2AndSayWhatWasMeant) {
  expect_usage_error("pcak x", "did you mean pack?");
  expect_usage_error("frobnicate", "unknown command \"frobnicate\"");
  expect_usage_error("''", "unknown command");
  expect_usage_error("--frobnicate", "unknown flag --frobnicate");
  expect_usage_error("--memory 1GiB run m -p a", "--memory: the flag stands before the command");
  expect_usage_error("tokenize", "PATH: the argument is missing");
  expect_usage_error("doctor --jsno", "did you mean --json?");
  expect_usage_error("tokenize x -p a -f b", "found -p and -f;");
  expect_usage_error("detokenize x --tokens 1,x", "--tokens");
  expect_usage_error("compare m -p a --preset auto,", "--preset: an entry of the list is empty");
  expect_usage_error("simulate --trace x --cache lru --capacity 4 --prefill 3",
                     "--prefill: only a replay on");
}

// Caches that begin with what a device is told, and ranks that no replay of the call takes.
TEST(CommandLine, AReplayNamesTheFlagThatItCannotFollow) {
  const std::string replay = "simulate --trace x ";
  for (const char* cache : {"static-popular", "static-layers", "static-random"})
    for (const char* beside : {"", " --ranks-of x"})
      expect_usage_error(replay + "--capacity 4 --cache lru," + cache + beside,
                         "--cache: this cache is for a device");
  for (const char* others : {"", "--cache lru --capacity 4", "--machine slicemoe --memory-experts 1GiB"})
    expect_usage_error(replay + "--ranks-of x " + others, "--ranks-of: this flag has no effect here");
  const std::string cache = " --cache lru --capacity 4 --ranks-of x";
  const std::string takes = ": a timed replay takes --preset and --memory-experts";
  expect_usage_error(replay + "--profile x --preset auto" + cache, "--profile" + takes);
  expect_usage_error(replay + "--preset auto" + cache, "--preset" + takes);
  expect_usage_error(replay + "--memory-experts 1GiB" + cache, "--memory-experts" + takes);
  expect_usage_error(replay + "--preset auto --memory-experts 1GiB --ranks-of x",
                     "--profile: a timed replay needs");
}

TEST(CommandLine, AWrongEntryOfAListOfTokensIsNamedWithItsPlace) {
  const auto expect = [](const std::string& list, const std::string& message, const std::string& found) {
    const std::string numbers = "expected numbers with commas between them, such as 1,2,3";
    for (const std::string& command :
         {"run " + kModel, "detokenize " + kModel, "forward " + kModel + " -o x"})
      expect_usage_error(
          command + " --tokens '" + list + "'",
          "--tokens: " + message + "; " + numbers + ", found " + found + "; correct the entry\n");
  };
  expect("1,,2", "entry 2 of the list is empty", "nothing at character 3");
  expect(",", "entry 1 of the list is empty", "nothing at character 1");
  expect("11,12,", "entry 3 of the list is empty", "nothing at character 7");
  expect("1,x,2", "entry 2 of the list is not a token id", "\"x\" at character 3");
  expect("1;2", "entry 1 of the list is not a token id", "\"1;2\" at character 1");
  expect("1,99999999999999999999999,3", "entry 2 of the list is not a token id",
         "\"99999999999999999999\" at character 3");
}

// Where, what, what was expected, what was found and what to do: none of the parser's own words.
TEST(CommandLine, EveryMistakeOnTheCommandLineHasTheFormOfAnError) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = sluice(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err, "sluice: " + message + "\n") << arguments;
  };
  expect(
      "doctor --jsno",
      "doctor: unknown flag --jsno; expected a flag that `sluice doctor --help` lists; did you mean --json?");
  expect("doctor --xyzzy=3",
         "doctor: unknown flag --xyzzy; expected a flag that `sluice doctor --help` lists; leave it out");
  expect("version -x",
         "version: unknown flag -x; expected a flag that `sluice version --help` lists; leave it out");
  expect("-q", "unknown flag -q; expected a flag that `sluice --help` lists; leave it out");
  expect("pcak x",
         "unknown command \"pcak\"; expected a command that `sluice --help` lists; did you mean pack?");
  expect(
      "run m -p a -n",
      "-n: the flag has no value; expected -n NUMBER, found the end of the command line; `sluice run --help` "
      "explains the usage");
  expect("run m -p --json",
         "-p: the flag has no value; expected -p TEXT, found the flag --json; give a value, or "
         "--prompt=--json if "
         "that is meant");
  expect(
      "run m -p a --json=3",
      "--json: the flag takes no value; expected --json alone, found --json=3; leave out what is behind it");
  expect("run m -p a --temp 1 --temp 2",
         "--temp: given more than once; expected one value, found 1 and 2; leave out all but one");
  // By the name that the user wrote.
  expect("run m -p a -n 1 -n 2",
         "-n: given more than once; expected one value, found 1 and 2; leave out all but one");
  expect("run m -p a --predict 1 --predict=2",
         "--predict: given more than once; expected one value, found 1 and 2; leave out all but one");
  expect("run m -p a -t1 -t 2",
         "-t: given more than once; expected one value, found 1 and 2; leave out all but one");
  expect("run m -p a -c x",
         "-c: not a whole number; expected a whole number from 1 to 2147483647, found \"x\"; give such a "
         "number, "
         "or leave the flag out");
  expect(
      "run m -p a --context x",
      "--context: not a whole number; expected a whole number from 1 to 2147483647, found \"x\"; give such a "
      "number, or leave the flag out");
  expect("pack m -o a --output b",
         "-o: given more than once; expected one value, found a and b; leave out all but one");
  expect("run m -p a --temp warm",
         "--temp: not a number; expected a number, such as 0.5, found \"warm\"; give such a number, or leave "
         "the "
         "flag out");
  expect("pack m -o x --level 1.5",
         "--level: not a whole number; expected a whole number, such as 8, found \"1.5\"; give such a "
         "number, or "
         "leave the flag out");
  expect(
      "pack m -o x --level 99999999999",
      "--level: value out of range; expected a whole number, such as 8, found \"99999999999\"; give such a "
      "number, or leave the flag out");
  expect("simulate --trace x --scope layr",
         "--scope: unknown name; expected layer or global, found \"layr\"; did you mean layer?");
  expect("reproduce flash",
         "PAPER: unknown name; expected zipmoe, slicemoe, dali or smoe, found \"flash\"; give one of these");
  expect("detokenize --tokens 1",
         "PATH: the argument is missing; expected `sluice detokenize PATH`, found nothing; "
         "`sluice detokenize --help` explains the usage");
  expect("lab",
         "NAME: the argument is missing; expected `sluice lab NAME`, found nothing; `sluice lab --help` "
         "explains "
         "the usage");
  expect(
      "calibrate",
      "STORE: the argument is missing; expected `sluice calibrate STORE`, found nothing; `sluice calibrate "
      "--help` explains the usage");
  expect("pack m",
         "--output: the flag is missing; expected --output PATH, found nothing; "
         "`sluice pack --help` explains the usage");
  expect(
      "run m",
      "run: a flag is missing; expected one of --prompt, --file or --tokens, found none of them; `sluice run "
      "--help` explains the usage");
  expect("run m -p a -f b",
         "run: flags that exclude each other; expected one of --prompt, --file or --tokens, found -p and -f; "
         "leave out all but one");
  expect(
      "run m --prompt a --tokens 1",
      "run: flags that exclude each other; expected one of --prompt, --file or --tokens, found --prompt and "
      "--tokens; leave out all but one");
  expect(
      "run m once upon -p a",
      "run: a word too many; expected MODEL and flags, found \"once\"; leave it out, or put a text that has "
      "blanks between quotes");
  expect(
      "run m plan -p a",
      "run: a word too many; expected MODEL and flags, found \"plan\"; leave it out, or put a text that has "
      "blanks between quotes");
  expect("version x",
         "version: a word too many; expected flags alone, found \"x\"; leave it out, or put a text that has "
         "blanks between quotes");
  expect("run m -p a --memory=",
         "--memory: the value is empty; expected a value, found \"\"; give one, or leave the flag out");
}

// A value that looks like a flag, and the other ways to write one.
TEST(CommandLine, ValuesAreWrittenInEveryUsualWay) {
  const auto ids = [](const std::string& words) {
    return Json::parse(sluice("tokenize " + kModel + " --json " + words).out).at("ids");
  };
  EXPECT_EQ(ids("--prompt=--json"), ids("-p--json"));
  EXPECT_EQ(ids("-p abc"), ids("--prompt abc"));
  EXPECT_EQ(ids("-p abc"), ids("-pabc"));
  EXPECT_EQ(ids("-p abc"), ids("--prompt=abc"));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream source(text);
  for (std::string line; std::getline(source, line);) lines.push_back(line);
  return lines;
}

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

// Whether a line that is too long has only one word, which nothing can break.
bool one_word(std::string line) {
  line.erase(0, line.find_first_not_of(' '));
  if (line.ends_with(" \\")) line.resize(line.size() - 2);
  return line.find(' ') == std::string::npos;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  const std::vector<std::string> lines = lines_of(sluice("--help").out);
  for (auto line = std::find(lines.begin(), lines.end(), "Commands:") + 1; line->starts_with("  "); ++line)
    names.push_back(line->substr(2, line->find(' ', 2) - 2));
  return names;
}

// The words are the same at every width, and none is cut.
TEST(CommandLine, HelpFitsTheTerminal) {
  const std::vector<std::string> names = command_names();
  ASSERT_GE(names.size(), 10u);
  const auto words = [](const std::string& text) {
    std::vector<std::string> all;
    std::istringstream source(text);
    for (std::string word; source >> word;)
      if (word != "\\") all.push_back(word);
    return all;
  };
  for (const std::string& name : names) {
    const std::string usual = sluice(name + " --help").out;
    for (const std::size_t columns : {50, 80, 120}) {
      const std::string help = sluice::program::run_command("COLUMNS=" + std::to_string(columns) +
                                                            " '" SLUICE_PROGRAM "' " + name + " --help")
                                   .out;
      EXPECT_EQ(words(help), words(usual)) << name;
      for (const std::string& line : lines_of(help)) EXPECT_LE(columns_of(line), columns) << line;
      EXPECT_TRUE(std::ranges::none_of(help, [](char c) { return c >= 0 && c < ' ' && c != '\n'; })) << help;
      if (columns == 80) {
        EXPECT_EQ(help, usual) << "a pipe has 80 columns";
      }
    }
  }
}

TEST(CommandLine, HelpOfRunBeginsWithPromptAndSampling) {
  const std::string help = sluice("run --help").out;
  std::size_t at = 0;
  for (const char* heading : {"\nArguments:\n", "\nPrompt (one of):\n", "\nChat template:\n", "\nSampling",
                              "\nCommon flags:\n", "\nPolicies:\n", "\nModels in slices"}) {
    const std::size_t next = help.find(heading);
    ASSERT_NE(next, std::string::npos) << heading;
    EXPECT_GT(next, at) << heading;
    at = next;
  }
  EXPECT_EQ(help.find("\nPrompt:\n"), std::string::npos) << "two groups of one name";
}

// A flag that nothing looks at is not taken for one that acts.
TEST(CommandLine, PolicyFlagsAreWhereTheyAct) {
  for (const char* flag : {"--router", "--cache", "--constraint"})
    expect_usage_error("profile m " + std::string(flag) + " exact", "unknown flag " + std::string(flag));
  expect_usage_error("profile m --preset zipmoe", "unknown flag --preset");
}

// A plan has no tokens to decide about. Still, the command line of a run can be planned.
TEST(CommandLine, PlanNamesPolicyFlagsThatChangeNoPlanInOneLine) {
  const std::string help = sluice("plan --help").out, of_run = sluice("run --help").out;
  const std::string words = words_of(help);
  const std::size_t line =
      words.find("Accepted as in run, without effect here: --low-view, --critical, --theta, ");
  ASSERT_NE(line, std::string::npos) << help;
  for (const char* flag :
       {"--critical", "--theta", "--critical-count", "--low-view", "--lsb-miss", "--lsb-reserve", "--warmup",
        "--kappa", "--rho", "--miss-rate", "--lambda", "--eta", "--cumsum-p", "--alpha", "--merge",
        "--renorm", "--resident", "--top-j"}) {
    const std::string entry = "\n  " + std::string(flag) + ' ';
    EXPECT_NE(of_run.find(entry), std::string::npos) << flag;
    EXPECT_EQ(help.find(entry), std::string::npos) << flag;
    EXPECT_NE(words.find(flag, line), std::string::npos) << flag;
  }
  for (const char* flag : {"--router", "--precision", "--constraint", "--max-loss", "--activations"})
    EXPECT_NE(help.find("\n  " + std::string(flag) + ' '), std::string::npos) << flag;
  EXPECT_EQ(sluice("plan " + kModel + " --router smoe --alpha 0.3 --memory " + memory(40)).code, 0);
}

TEST(CommandLine, CompareSaysWhatItDoesInsteadOfSampling) {
  for (const char* flag : {"--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty"})
    expect_usage_error(
        "compare m -p a " + std::string(flag) + " 1",
        "compare: the command has no flag " + std::string(flag) +
            "; expected no sampling: each preset takes the likeliest token, so that texts can be "
            "compared; leave it out");
}

TEST(CommandLine, TemplatesNameTheFamilyOfTheirAnswers) {
  const std::string caps = "template " + kModel + " --chat-template chatml --caps";
  EXPECT_NE(sluice(caps).out.find("\ncalls are written  as hermes does\n"), std::string::npos);
  EXPECT_NE(sluice(caps + " --json").out.find(R"("family":"hermes")"), std::string::npos);
}

// In this order, since later commands take what earlier ones make.
TEST(CommandLine, ReportsFitTheTerminal) {
  const ::sluice::testing::ScratchDirectory directory;
  const std::string store = directory.file("a-store-with-a-name-of-some-length.sluice");
  const std::string text =
      directory.write("text", "Once upon a time there was an old king who had three sons.");
  const std::string questions = SLUICE_SOURCE_DIR "/tests/data/eval/hellaswag.jsonl.zst";
  const std::string budget = " --memory " + memory(40);
  const auto text_of = [](int tokens) {
    return " -f " + kModel + "/eval.txt --tokens " + std::to_string(tokens) + " --ctx 48";
  };
  for (const std::size_t columns : {50, 80}) {
    const std::string made = directory.file("made-" + std::to_string(columns));
    for (const std::string& words :
         {"inspect " + kModel,
          "inspect --tensors " + kModel,
          "doctor " + kModel,
          std::string("version"),
          std::string("lab list"),
          "plan " + kModel + budget,
          "run " + kModel + " --tokens 1,2 -n 2 --temp 0 --ignore-eos --show-experts" + budget,
          "pack " + kModel + " -o " + store + std::to_string(columns),
          "verify " + store + std::to_string(columns),
          "unpack " + store + std::to_string(columns) + " -o " + made + "-unpacked",
          "eval " + kModel + " -f " + text + budget,
          "eval " + kModel + " --reference " + kModel + " -f " + text,
          "eval " + kModel + " --task hellaswag --limit 2 --data " + questions + budget,
          "quantise " + kModel + " -o " + made + "-rounded",
          "synth " + kModel + "/config.json -o " + made + "-random",
          "trace " + kModel + " --tokens 1,2 -n 2 -o " + made + ".trace" + budget,
          "simulate --trace " + made + ".trace --cache lru --capacity 4",
          "simulate --trace " + made + ".trace --machine slicemoe --memory-experts 8MB --shape " + kModel,
          "profile " + store + std::to_string(columns) + " -q -o " + made + ".json",
          "simulate --trace " + made + ".trace --profile " + made +
              ".json --preset zipmoe --memory-experts 8MiB",
          "pack " + kModel + " --slices 4/2 -o " + made + "-sliced.sluice",
          "calibrate " + made + "-sliced.sluice --reference " + kModel + text_of(96) + " --prefill 16",
          "calibrate " + kModel + " --residual" + text_of(240) + " -o " + made + ".residual",
          "compare " + kModel + " --tokens 1,2 -n 2 --runs 1 --preset auto,z-accelerate" + budget}) {
      const Outcome outcome = sluice::program::run_command("COLUMNS=" + std::to_string(columns) +
                                                           " '" SLUICE_PROGRAM "' " + words);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      for (const std::string& line : lines_of(outcome.out + outcome.err))
        EXPECT_TRUE(columns_of(line) <= columns || one_word(line)) << columns << ": " << line;
    }
  }
}

// What `run` does at a budget, `plan` plans at it.
TEST(CommandLine, PlanTakesTheContextThatRunWould) {
  EXPECT_EQ(sluice("run " + kModel + " -p 'Once upon a time' -n 2 --temp 0 --memory " + memory(25)).code, 0);
  const Outcome planned = sluice("plan " + kModel + " --memory " + memory(25) + " --json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(Json::parse(planned.out).at("tokens"), 256);
  const Outcome more = sluice("plan " + kModel + " --tokens 4096 --memory " + memory(25));
  EXPECT_EQ(more.code, 1);
  EXPECT_NE(more.err.find("too small"), std::string::npos) << more.err;
  const std::string table = sluice("plan " + kModel + " --memory " + memory(40)).out;
  EXPECT_EQ(table.find("0.000"), std::string::npos) << table;
}

TEST(CommandLine, WithoutArgumentsShowsHelpOnStandardError) {
  const Outcome outcome = sluice("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("Usage:"), std::string::npos);
}

TEST(CommandLine, EveryCommandHasHelpWithAnExample) {
  const std::string help = sluice("--help").out;
  std::size_t commands = 0;
  std::size_t line = help.find("Commands:\n") + sizeof("Commands:");
  while (line < help.size() && help.compare(line, 2, "  ") == 0) {
    const std::string name = help.substr(line + 2, help.find(' ', line + 2) - line - 2);
    const Outcome outcome = sluice(name + " --help");
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_NE(outcome.out.find("sluice " + name), std::string::npos) << name;
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << name;
    EXPECT_EQ(sluice("help " + name).out, outcome.out);
    ++commands;
    line = help.find('\n', line) + 1;
  }
  EXPECT_GE(commands, 10u);
}

// Help shows no C++ types and no lists of checks.
TEST(CommandLine, HelpCallsValuesByOneWord) {
  for (const char* command : {"run", "trace", "compare", "reproduce", "pack", "quantise", "synth", "simulate",
                              "plan", "profile", "eval", "forward", "inspect", "doctor", "lab"}) {
    const std::string help = sluice(std::string(command) + " --help").out;
    for (const char* noise : {"INT", "FLOAT", "POSITIVE", " in [", "TEXT:", "NUMBER:"})
      EXPECT_EQ(help.find(noise), std::string::npos) << command << ": " << noise << "\n" << help;
  }
  EXPECT_NE(sluice("run --help").out.find("-n,--predict NUMBER=128 "), std::string::npos);
  expect_usage_error("run x -p x -n -1", "0 to 2147483648");
  expect_usage_error("simulate --trace x --scope nowhere", "layer");
}

TEST(CommandLine, PatternsThatLeaveNothingOutAreToldBeforePacking) {
  const std::string store = ::testing::TempDir() + "/sluice-command-line-exclude.sluice";
  const std::string pack = "pack " + kModel + " -o " + store;
  expect_usage_error(pack + " --exclude README.md --exclude 'consolidatd*'", "consolidatd*");
  expect_usage_error(pack + " --exclude 'consolidatd*'", "config.json");
  EXPECT_FALSE(std::filesystem::exists(store));
  EXPECT_FALSE(std::filesystem::exists(store + ".partial"));
}

TEST(CommandLine, MissingFilesExitWith1AndAreNamed) {
  for (const char* arguments :
       {"tokenize /no/such/model -p a", "doctor /no/such/model", "detokenize /no/such/model --tokens 1"}) {
    const Outcome outcome = sluice(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find("/no/such/model"), std::string::npos) << outcome.err;
  }
}

TEST(CommandLine, FullDiskIsAFailure) {
  const Outcome outcome = sluice("version >/dev/full");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos);
}

TEST(CommandLine, ClosedStandardFilesAreSurvived) {
  EXPECT_EQ(sluice("version 2>&- <&-").code, 0);
  // A result that cannot be written is not a success.
  const Outcome closed = sluice("version >&- <&-");
  EXPECT_EQ(closed.code, 1);
  EXPECT_NE(closed.err.find("standard output"), std::string::npos) << closed.err;
  EXPECT_EQ(sluice("frobnicate 2>&-").code, 2);
}

TEST(CommandLine, VersionAndDoctorPrintJson) {
  const auto version = Json::parse(sluice("version --json").out);
  EXPECT_TRUE(version.at("isa").at("available").is_array());
  EXPECT_EQ(sluice("--version").out, "sluice " + version.at("version").get<std::string>() + "\n");
  const auto doctor = Json::parse(sluice("doctor --json " + testing::TempDir()).out);
  EXPECT_GT(doctor.at("default_budget").get<std::uint64_t>(), 0u);
  for (const auto& check : doctor.at("checks")) {
    EXPECT_EQ(check.at("ok").get<bool>(), check.at("fix").get<std::string>().empty())
        << check;  // a warning says what to do
  }
}

TEST(CommandLine, DoctorLeavesNothingBehind) {
  std::string directory = testing::TempDir() + "/sluice-doctor-test-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(sluice("doctor " + directory).code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(CommandLine, TokenizeAndDetokenizeRoundTrip) {
  const std::string text = "The old king, naïve \\ as ever, said: 123.";
  const auto ids = Json::parse(sluice("tokenize " + kModel + " --json -p '" + text + "'").out).at("ids");
  ASSERT_GT(ids.size(), 5u);
  std::string list;
  for (const auto& id : ids) list.append(list.empty() ? "" : ",").append(id.dump());
  EXPECT_EQ(sluice("detokenize " + kModel + " --tokens " + list).out, text + "\n");
  const auto json =
      Json::parse(sluice("detokenize " + kModel + "/tokenizer.json --json --tokens " + list).out);
  EXPECT_EQ(json.at("text"), text);
  const std::string lines = sluice("tokenize " + kModel + " -p '" + text + "'").out;
  EXPECT_EQ(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')), ids.size());
}

TEST(CommandLine, CtrlCEndsACommandThatWaitsForStandardInput) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"tokenize", kModel, "-f", "-"},
                                             {"lab", "evict"},
                                             {"run", kModel, "-f", "-"},
                                             {"eval", kModel, "-f", "-"}}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      sluice::program::Running program(words);
      program.interrupt(signal);
      const Outcome outcome = program.wait();
      EXPECT_EQ(outcome.code, 130) << words[0];
      EXPECT_EQ(outcome.out, "sluice: interrupted\n") << words[0];
    }
  }
}

TEST(CommandLine, CtrlCAfterAnswersLosesNoneOfThem) {
  sluice::program::Running lab({"lab", "evict"});
  lab.write("{\"policy\":\"lru\",\"capacity\":2,\"requests\":[1,2,3,1],\"seed\":0}\n");
  EXPECT_TRUE(lab.read().starts_with("{"));
  lab.write("{\"policy\":");  // half a line
  lab.interrupt();
  EXPECT_EQ(lab.wait().code, 130);
}

// Every command takes the flags of the table, and refuses senseless values even where a flag has no effect.
TEST(CommandLine, CommonFlagsAreTheSameEverywhere) {
  for (const char* command :
       {"run", "forward", "eval", "inspect", "list", "pack", "unpack", "verify", "tokenize", "detokenize",
        "template", "lab", "simulate", "synth", "doctor", "version"}) {
    const std::string name = command;
    const std::string help = sluice(name + " --help").out;
    for (const char* flag : {"--memory", "-t,--threads", "--isa", "--io", "--json", "-q,--quiet", "--seed"}) {
      const std::size_t without = std::min(help.find("without effect here: "), help.size());
      const std::string idle = help.substr(without, help.find("\n\n", without) - without);
      const bool acts = help.find(std::string("\n  ") + flag + " ") != std::string::npos;
      const bool does_nothing = idle.find(flag) != std::string::npos;
      EXPECT_NE(acts, does_nothing) << name << " " << flag << "\n" << help;
    }
    for (const char* flag : {"--memory 5XB", "--memory ''", "--threads -1", "-t 1025", "--threads x",
                             "--isa neno", "--io slow", "--seed -1", "--seed 18446744073709551616"}) {
      const std::string wrong = flag;
      const std::string word = wrong.substr(0, wrong.find(' '));
      expect_usage_error(name + " " + wrong, word);
    }
#if defined(__x86_64__)
    expect_usage_error(name + " --isa neon", "--isa");
#endif
  }
  const std::string common =
      " --memory 1GiB --threads 1 --isa scalar --io buffered --seed 18446744073709551615 --json -q";
  for (const std::string& command :
       {std::string("version"), "doctor " + testing::TempDir(), std::string("lab list"), "inspect " + kModel,
        "tokenize " + kModel + " -p a", "detokenize " + kModel + " --tokens 1"}) {
    const Outcome outcome = sluice(command + common);
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
    EXPECT_NO_THROW(Json::parse(outcome.out)) << command;
  }
  EXPECT_NE(words_of(sluice("version --help").out).find("without effect here: --memory, -t,--threads, --isa"),
            std::string::npos);
}

TEST(CommandLine, NumbersOutOfRangeSayWhatIsExpectedAndFound) {
  const auto expect = [](const std::string& arguments, const std::string& flag, const std::string& range,
                         const std::string& found) {
    const bool whole = found.find_first_not_of("-0123456789") == found.npos;
    expect_usage_error(arguments, flag + (whole ? ": value out of range" : ": not a whole number") +
                                      "; expected a whole number from " + range + ", found \"" + found +
                                      "\"; give such a number, or leave the flag out\n");
  };
  expect("run m --tokens 1 -n abc", "-n", "0 to 2147483648", "abc");
  expect("run m --tokens 1 -n 1.5", "-n", "0 to 2147483648", "1.5");
  expect("run m --tokens 1 -c 0", "-c", "1 to 2147483647", "0");
  expect("run m --tokens 1 --chunk 0", "--chunk", "1 to 65536", "0");
  expect("run m --tokens 1 --top-k x", "--top-k", "0 to 2147483648", "x");
  expect("trace m --tokens 1 -o x -n 0", "-n", "1 to 2147483648", "0");
  expect("compare m --tokens 1 --runs 1001", "--runs", "1 to 1000", "1001");
  expect("plan m --batch 257", "--batch", "1 to 256", "257");
  expect("eval m -f x --ctx 1", "--ctx", "2 to 16777216", "1");
  expect("profile m --repeats 0", "--repeats", "1 to 1000", "0");
  expect("reproduce zipmoe -n 3", "-n", "4 to 1048576", "3");
  expect("synth c -o x --layers 0", "--layers", "1 to 1048576", "0");
  expect("synth c -o x --experts 4294967296", "--experts", "1 to 1048576", "4294967296");
  expect("simulate --trace x --window 0", "--window", "1 to 2147483648", "0");
  expect("simulate --trace x --workers 1025", "--workers", "1 to 1024", "1025");
  expect("pack m -o x --chunks 257", "--chunks", "1 to 256", "257");
  expect("version --threads 1025", "--threads", "0 to 1024", "1025");
  expect_usage_error("synth c -o x --shard-size 0", "--shard-size");
  expect_usage_error("pack " + kModel + " -o /nowhere/x --codec none --chunks 3", "--chunks");
}

// The text with single blanks between words, wherever its lines were broken.
TEST(CommandLine, HelpListsTheInstructionSetsThatTheErrorLists) {
  const std::string error = sluice("version --isa bogus").err;
  // What this CPU has, which is less than the help lists.
  EXPECT_NE(error.find("auto, scalar"), std::string::npos) << error;
  EXPECT_EQ(error.find("amx") != std::string::npos && error.find("neon") != std::string::npos, false)
      << error;
  for (const char* command : {"run", "pack", "unpack", "verify", "reproduce"}) {
    const std::string help = words_of(sluice(std::string(command) + " --help").out);
    EXPECT_NE(help.find("auto, scalar, avx2, avx512, avx512_vbmi2, avx512_bf16, amx, neon"),
              std::string::npos)
        << help;
  }
}

TEST(CommandLine, SeedsThatSampleNothingSayWhatTheyDo) {
  for (const char* command : {"forward", "eval", "plan", "compare", "profile"})
    EXPECT_EQ(words_of(sluice(std::string(command) + " --help").out).find("random for sampling"),
              std::string::npos)
        << command;
  EXPECT_NE(words_of(sluice("run --help").out).find("random for sampling"), std::string::npos);
}

// The last token of an answer needs no position; a context of 8 holds 5 and 4.
TEST(CommandLine, HelpOfTheContextSaysWhatItCounts) {
  const Outcome outcome =
      sluice("run " + kModel + " --tokens 1,2,3,4,5 -n 20 -c 8 --temp 0 --ignore-eos --json --memory 64MiB");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["tokens"].size(), 4u);
  EXPECT_NE(words_of(sluice("run --help").out).find("prompt and answer together, less the answer's last"),
            std::string::npos);
  EXPECT_NE(words_of(sluice("eval --help").out).find("Refused: the context of eval is its window, --ctx"),
            std::string::npos);
}

// Routers get all tokens, and treat some as a prompt.
TEST(CommandLine, HelpSaysWhereARouterHasAnEffect) {
  for (const char* command : {"forward", "eval"})
    EXPECT_NE(words_of(sluice(std::string(command) + " --help").out)
                  .find("where --prefill leaves tokens to single"),
              std::string::npos)
        << command;
  EXPECT_NE(words_of(sluice("run --help").out).find("all but exact change the text"), std::string::npos);
}

TEST(CommandLine, AnEmptyValueBehindAnEqualsSignTakesNothingElse) {
  expect_usage_error("run m --tokens= -n 3", "--tokens: the value is empty");
  expect_usage_error("run m --tokens 1 --memory=", "--memory: the value is empty");
  expect_usage_error("forward m --out= --tokens 1", "--out: the value is empty");
  const Outcome stop = sluice("run " + kModel + " --stop= --tokens 1 -n 1 --memory 64MiB");
  EXPECT_EQ(stop.err.find("--tokens"), std::string::npos) << stop.err;
}

TEST(CommandLine, UnknownCodecsAreWrongUsage) {
  expect_usage_error("pack " + kModel + " -o /nowhere/x --codec foo", "native, zstd, lz4 or none");
  expect_usage_error("pack " + kModel + " -o /nowhere/x --codec native --level 3", "--level");
}

TEST(CommandLine, ErrorsSayWhatToDo) {
  namespace fs = std::filesystem;
  std::string directory = testing::TempDir() + "/sluice-broken-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto write = [&](const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(directory + "/" + name).parent_path());
    std::ofstream(directory + "/" + name, std::ios::binary) << content;
  };
  const auto expect_fix = [&](const std::string& arguments, const std::string& place,
                              const std::string& fix) {
    const Outcome outcome = sluice(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with("; " + fix + "\n")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  write("empty/x", "");
  expect_fix("inspect " + directory + "/empty", "empty",
             "download the weights, or name the directory that holds them");
  expect_fix("verify " + directory + "/empty/x", "empty/x", "name the directory of the store");
  expect_fix("verify " + directory + "/nothing", "nothing", "check the path");
  write("x.sluice.partial/journal", "");
  write("x.sluice.partial/dense.bin", "");
  expect_fix("verify " + directory + "/x.sluice.partial", "x.sluice.partial: the store is not finished",
             "run the pack command again: it goes on where it stopped");
  expect_fix("unpack " + directory + "/empty -o " + directory + "/out", "empty",
             "pack the model first: sluice pack MODEL -o NAME.sluice");
  write("json/tokenizer.json", "{\"model\": ");
  expect_fix("tokenize -p a " + directory + "/json", "tokenizer.json at byte",
             "download the tokenizer files again");
  const auto with_config = [&](const std::string& name, const std::string& key, const Json& value) {
    Json config = read_json_file(kModel + "/config.json");
    config[key] = value;
    write(name + "/config.json", config.dump());
    fs::create_symlink(kModel + "/model.safetensors", directory + "/" + name + "/model.safetensors");
    return directory + "/" + name;
  };
  expect_fix("inspect " + with_config("a", "hidden_size", "x"), "config.json: hidden_size",
             "correct the value");
  expect_fix("inspect " + with_config("b", "hidden_act", "relu"), "config.json: hidden_act",
             "use a model whose config says so");
  const auto expect_tells = [&](int code, const std::string& arguments, const std::string& text) {
    const Outcome outcome = sluice(arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  };
  expect_tells(1, "run " + with_config("d.sluice", "torch_dtype", "float32") + " --tokens 1",
               "d.sluice: a packed store is expected because of the name");
  expect_tells(2, "run '' -p a", "the argument after \"run\" is empty");
  expect_tells(
      2, "detokenize " + kModel + " --tokens 1,999999",
      "--tokens: token id is out of range; expected 0 to 6399, found 999999; give ids of this model's "
      "tokenizer");
  expect_tells(2, "run " + kModel + " --tokens 999999", "--tokens: token id is out of range");
  expect_tells(2, "forward " + kModel + " --tokens 999999 --out " + directory + "/o",
               "--tokens: token id is out of range");
  const std::string empty = directory + "/empty/x";
  expect_tells(1, "run " + kModel + " -f " + empty, empty + ": the prompt has no tokens");
  expect_tells(1, "run " + kModel + " -f - <&-", "standard input: the prompt has no tokens");
  expect_tells(1, "run " + kModel + " -c 2 --tokens 1,2,3", "raise -c");
  write("broken\nname/tokenizer.json", "");
  expect_fix("tokenize -p a '" + directory + "/broken\nname'", "broken\\x0aname",
             "download the tokenizer files again");
  expect_fix("inspect " + with_config("c", "vocab_size", 6401), "embed_tokens",
             "download the config.json that belongs to these weights");
  expect_fix("run " + kModel + " --tokens 1 -n 1 --profile " + kModel + "/config.json",
             "config.json: not a profile", "measure: sluice profile MODEL -o FILE.json");
  expect_fix("lab evict -f " + directory, directory + ": not a file", "name a file in it");
  expect_fix("synth " + kModel + "/config.json -o " + directory + "/s --experts 2", "num_experts_per_tok",
             "choose other --layers or --experts: the config itself is sound");
  expect_tells(2, "quantise " + kModel + " -o " + directory + "/q --quantiser x",
               "--quantiser: unknown quantiser");
  expect_tells(2, "pack " + kModel + " -o " + directory + "/p.sluice --exclude config.json",
               "--exclude: a store without the model's config.json could not be run");
  EXPECT_FALSE(fs::exists(directory + "/p.sluice"));
  fs::remove_all(directory);
}

TEST(CommandLine, ErrorsSayWhatWasExpectedAndFoundAndWhatToDo) {
  const sluice::testing::ScratchDirectory scratch;
  const std::string nothing = scratch.file("nothing"), file = scratch.write("file", "text"),
                    empty = scratch.write("empty.json", ""), cut = scratch.write("cut.json", "{\"a\": 1"),
                    directory = scratch.file("directory"), store = scratch.file("m.sluice"),
                    replay = "simulate --trace " SLUICE_SOURCE_DIR
                             "/tests/data/routing/dsv2lite.first48.mrt.zst --cache lru";
  std::filesystem::create_directory(directory);
  ASSERT_EQ(sluice("pack " + kModel + " -q -o " + store).code, 0);
  const std::string no_model =
      ": no such directory; expected a Hugging Face model directory, a NAME.sluice store or a NAME.gguf "
      "file, found nothing; "
      "check "
      "the path";
  const std::string no_store =
      ": no such store; expected a packed store, NAME.sluice, found nothing; check the path";
  const std::string taken = ": exists already; expected a name that nothing has, found ";
  const std::string no_place =
      ": no such directory; expected a directory to write a in, found nothing; make it first, or choose "
      "another "
      "place";
  const std::string short_trace =
      scratch.write("short.trace", "SLTRACE\n" + std::string("\1\0\0\0\xe8\3\0\0head", 12));
  std::ifstream routing(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst", std::ios::binary);
  const std::string whole_trace(std::istreambuf_iterator<char>(routing), {}),
      cut_trace = scratch.write("cut.mrt.zst", whole_trace.substr(0, 15000));
  const std::string measure = "; measure: sluice profile MODEL -o FILE.json";
  const std::string no_room =
      "--capacity: neither a number of experts nor a size; expected a number of experts such as 64, or a "
      "size such "
      "as 4GiB, found ";
  const struct {
    std::string call, message;
  } cases[] = {
      {"run " + nothing + " -p a", nothing + no_model},
      {"pack " + nothing + " -o " + scratch.file("a.sluice"), nothing + no_model},
      {"verify " + nothing, nothing + no_store},
      {"unpack " + nothing + " -o " + scratch.file("a"), nothing + no_store},
      {"pack " + kModel + " -o " + store, store + taken + "a directory; remove it or choose another name"},
      {"pack " + kModel + " -o " + file, file + taken + "a file; remove it or choose another name"},
      {"unpack " + store + " -o " + directory,
       directory + taken + "a directory; remove it or choose another name"},
      {"synth " + kModel + "/config.json -o " + directory,
       directory + taken + "a directory; remove it or choose another name"},
      {"synth " + kModel + "/config.json -o " + nothing + "/a/", nothing + no_place},
      {"pack " + kModel + " -o " + nothing + "/a", nothing + no_place},
      {"unpack " + store + " -o " + nothing + "/a", nothing + no_place},
      {"quantise " + kModel + " -o " + nothing + "/a", nothing + no_place},
      {"run " + kModel + " -p ''",
       "-p: the prompt has no tokens; expected text of 1 or more tokens, found no text; give some text, or "
       "--tokens"},
      {"run " + kModel + " -f " + directory,
       directory + ": not a file; expected a file, found a directory; name a file in it"},
      {"run " + kModel + " -p a --stop ''",
       "--stop: a stop string is empty; expected text that ends the answer, found \"\"; give --stop some "
       "text, or "
       "leave it out"},
      {"pack " + kModel + " -o " + nothing + " --dense int8",
       "--dense: dense weights of 8 bits belong to a store with sliced experts; expected --slices beside "
       "int8, or "
       "exact, found int8 alone; give --slices, too, or leave --dense out"},
      {"run " + store + " -p a --max-loss 1%",
       "--max-loss: nobody has measured what this store loses; expected " + store +
           "/sidecar/calibration.json, made for this store, found none; make it: sluice calibrate " + store +
           " -f "
           "TEXT; or leave --max-loss out: this model loses nothing"},
      {"run " + kModel + " -p a --max-loss 1%",
       "--max-loss: what a loss costs is measured for packed stores, which keep it; expected a NAME.sluice "
       "store, found " +
           kModel + "; leave --max-loss out: this model loses nothing; or pack it"},
      {"run " + kModel + " -p a --device vulkan",
       "--device: no such device can compute; expected auto, none, cuda, cuda:N, emulated or "
       "emulated:KEY=VALUE,…, found \"vulkan\"; "
       "write for example cuda, emulated:link=2GB/s,latency=20us, or none for the host alone"},
      {"run " + kModel + " -p a --preset slicemoe",
       "--preset: this preset is for models in slices; expected a store of family sliced, found slicemoe, "
       "and " +
           kModel + " has none; pack the model in slices: sluice pack MODEL -o NAME.sluice --slices 8/4"},
      {"compare " + kModel + " -p a --preset slicemoe",
       "--preset: preset slicemoe does not go with this model: it is for models in slices; expected a store "
       "of "
       "family sliced, found " +
           kModel +
           ", which has no slices; leave slicemoe out, or pack the model in slices: sluice pack MODEL -o "
           "NAME.sluice --slices 8/4"},
      {"reproduce zipmoe --model none -o " + nothing,
       "--model: zipmoe runs a model, so there must be one; expected a model directory or a packed store; "
       "none is "
       "for slicemoe, dali and smoe, found none; give --model DIR, or leave it out for the bundled model"},
      {"pack " + kModel + " -o " + nothing + " --codec native --level 3",
       "--level: codec native has no levels; expected no level, or a codec that has some: zstd 0 to 19, "
       "default 0; lz4 3 to 12, "
       "default 4, found 3; leave --level out, or choose such a codec"},
      {"simulate --cache lru --capacity 4 --trace " + cut_trace,
       cut_trace +
           " at byte 15000: compressed data ends too early; expected the rest of a zstd frame, found the end "
           "of the file; copy or download the file again"},
      {"simulate --cache lru --capacity 4 --trace " + short_trace,
       short_trace +
           " at byte 20: the file ends within its header; expected 1024 bytes of it, found 20; copy the "
           "file again, or record it again"},
      {"run " + kModel + " -p a --decisions " + file,
       file + taken + "a file; choose another name, or remove it"},
      {"trace " + kModel + " -p a -o " + file,
       file + taken + "a file; choose another name, or add to it with --append"},
      {"trace " + kModel + " -p a -o " + directory, directory + taken + "a directory; choose another name"},
      {"trace " + kModel + " -p a -o /dev/full",
       "/dev/full" + taken + "a link, device, pipe or socket; choose another name"},
      {"run " + kModel + " -p a --profile /dev/null",
       "/dev/null at byte 0: unexpected end of the JSON; expected a JSON value, found nothing" + measure},
      {"run " + kModel + " -p a --profile " + cut, cut +
                                                       " at byte 7: unexpected end of the JSON; expected the "
                                                       "rest of the JSON value, found the end of the "
                                                       "text" +
                                                       measure},
      {"doctor --profile " + empty,
       empty + " at byte 0: unexpected end of the JSON; expected a JSON value, found nothing" + measure},
      {"doctor " + file,
       file +
           ": no such directory; expected the directory where models lie, found a file; name that directory"},
      {replay + " --capacity -4", no_room + "\"-4\"; give one of these"},
      {replay + " --capacity 8,x", no_room + "\"x\"; give one of these"},
      {replay + " --capacity 4Mi --machine dali-3090 --device-slots 4",
       no_room + "\"4Mi\"; give one of these"},
  };
  for (const auto& [call, message] : cases) {
    const Outcome outcome = sluice(call);
    EXPECT_NE(outcome.code, 0) << call;
    EXPECT_EQ(outcome.out, "") << call;
    EXPECT_EQ(outcome.err, "sluice: " + message + "\n") << call;
  }
}

TEST(CommandLine, TextBeyondTheBudgetIsNotTokenized) {
  const Outcome outcome = sluice("tokenize " + kModel + " -f " + kModel + "/eval.txt --memory 64KiB");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("too large to be tokenized"), std::string::npos) << outcome.err;
}

TEST(CommandLine, TokenOutOfRangeIsAnError) {
  const Outcome outcome = sluice("detokenize " + kModel + " --tokens 1,999999");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
