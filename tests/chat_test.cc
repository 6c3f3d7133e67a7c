// `sluice chat`, from a pipe and at a terminal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"
#include "person.h"

namespace sluice::program {
namespace {

// A line can be typed: the terminal has been told to mark what is pasted, and the prompt stands there.
const std::string kReady = "\x1b[?2004h> ";

// The bundled model has no template and was not taught to answer: it goes on as a story does.
class ChatTest : public PackedModelTest {
 protected:
  static std::string flags() { return " --chat-template chatml --temp 0"; }
  static Outcome chat(const std::string& words) {
    return run("chat " + store() + flags() + " -n 12 " + words);
  }
  static Outcome chat_from(const std::string& lines, const std::string& words, int tokens = 12) {
    const std::string path = file("lines.txt");
    std::ofstream(path) << lines;
    return run_command("sh -c '\"" SLUICE_PROGRAM "\" chat " + store() + flags() + " -n " +
                       std::to_string(tokens) + " " + words + " <" + path + "'");
  }
  static std::vector<Json> json_lines(const Outcome& outcome) {
    std::vector<Json> lines;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  // A person at a terminal, whose files are in a directory of their own.
  struct Sitting {
    explicit Sitting(int tokens = 12, const char* kind = "xterm")
        : person(words(tokens), {{"XDG_STATE_HOME", home}, {"HOME", home}, {"NO_COLOR", "1"}}, kind) {}
    static std::vector<std::string> words(int tokens) {
      std::vector<std::string> words = {"chat", store()};
      std::istringstream text(flags() + " --memory 64MiB -n " + std::to_string(tokens));
      for (std::string word; text >> word;) words.push_back(word);
      return words;
    }
    const sluice::testing::ScratchDirectory directory;
    const std::string home = directory.path();
    const std::string history = home + "/sluice/chat_history";
    Person person;
  };
};

TEST_F(ChatTest, AnswersOnce) {
  const Outcome outcome = chat("-p 'Tell me of the sea.'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(outcome.out.size(), 10u);
  EXPECT_TRUE(outcome.out.ends_with('\n'));
  EXPECT_NE(outcome.err.find(" tok/s"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(chat("-p 'Tell me of the sea.' -q").err, "");
}

TEST_F(ChatTest, AnswersTheLinesOfAPipe) {
  const Outcome outcome = chat_from("One day\nAnd then\n", "--json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<Json> lines = json_lines(outcome);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["stop_reason"], "length");
  EXPECT_EQ(lines[0]["statistics"]["tokens"], 12);
  EXPECT_EQ(lines[0]["statistics"]["kept_tokens"], 0);
  // The second prompt begins as the first one and its answer did.
  const auto kept = lines[1]["statistics"]["kept_tokens"].get<int>();
  EXPECT_GT(kept, lines[0]["statistics"]["prompt_tokens"].get<int>());
  EXPECT_LT(kept, lines[1]["statistics"]["prompt_tokens"].get<int>());
  const Outcome plain = chat_from("One day\nAnd then\n", "-q");
  EXPECT_EQ(plain.out,
            lines[0]["content"].get<std::string>() + "\n\n" + lines[1]["content"].get<std::string>() + "\n");
}

// What is kept between turns changes no token.
TEST_F(ChatTest, IsTheSameInABudgetAndFromTheStart) {
  const std::string lines = "One day\nAnd then\nAt last\n";
  const Outcome whole = chat_from(lines, "-q"), small = chat_from(lines, "-q --memory 40MiB --chunk 16");
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(small.out, whole.out) << small.err;
}

TEST_F(ChatTest, TakesCommandsAndSeveralLines) {
  const std::string saved = file("saved.json");
  std::filesystem::remove(saved);
  const Outcome outcome = chat_from(
      "/system Be brief.\n/set n 3\nOne day\n\"\"\"two\nlines\"\"\"\n//slash\nback\\\nslash\n/undo\n/save " +
          saved + "\n/exit\nnever asked\n",
      "-q");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json messages = Json::parse(content_of(saved));
  ASSERT_EQ(messages.size(), 7u) << messages.dump();
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[0]["content"], "Be brief.");
  EXPECT_EQ(messages[3]["content"], "two\nlines");
  EXPECT_EQ(messages[5]["content"], "/slash");
  // What was saved goes on as if it had never ended.
  const Outcome loaded = chat_from("/load " + saved + "\n/regen\n", "-q", 3);
  EXPECT_EQ(loaded.out, messages[6]["content"].get<std::string>() + "\n") << loaded.err;
  EXPECT_EQ(chat_from("/save " + saved + "\n", "-q").code, 1);
}

TEST_F(ChatTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](const std::string& lines, const std::string& words, int code,
                           const std::string& message) {
    const Outcome outcome = chat_from(lines, words);
    EXPECT_EQ(outcome.code, code) << lines << words;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  };
  refused("/hlep\n", "", 2, "did you mean help?");
  refused("/s\n", "", 2, "system");
  refused("/set temp hot\n", "", 2, "/set temp");
  refused("/set temp -1\n", "", 2, "--temp");
  refused("/set tmp 1\n", "", 2, "did you mean temp?");
  refused("/load nothing.json\n", "", 1, "nothing.json");
  refused("", "--think maybe", 2, "--think");
  refused("hello\n", "-c 4", 1, "longer than the context");
  const Outcome without = run("chat " + store() + " -p hello");
  EXPECT_EQ(without.code, 1);
  EXPECT_NE(without.err.find("chatml"), std::string::npos) << without.err;
}

TEST_F(ChatTest, AFullContextEndsTheAnswerAndSaysSo) {
  const Outcome outcome = chat_from("One day\n", "-c 32", 0);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("the context of 32 tokens is full"), std::string::npos) << outcome.err;
}

TEST_F(ChatTest, APersonTalks) {
  Sitting sitting;
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  person.see(kReady);
  person.type("One dax\x7fy\r");  // a letter taken back
  person.see("12 tokens");
  person.see(kReady);
  person.type("/show\r");
  EXPECT_NE(person.see("system").find("chatml"), std::string::npos);
  person.see(kReady);
  person.type("/nonsense\r");
  person.see("unknown command");
  person.see(kReady);
  person.type("/tokens\r");
  person.see("tokens of the context are used");
  person.see(kReady);
  person.type("\x1b[A\x1b[A\x1b[A\x1b[A\r");  // the first line again
  person.see("kept");
  person.see(kReady);
  EXPECT_EQ(person.leave_by(kCtrlD).code, 0);
  const std::string history = content_of(sitting.history);
  EXPECT_NE(history.find("One"), std::string::npos) << history;
  struct stat status = {};
  ASSERT_EQ(::stat(sitting.history.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ChatTest, CtrlCEndsTheAnswerAndNotTheProgram) {
  Sitting sitting(3000);
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  person.see(kReady);
  person.type("One day\r");
  for (int token = 0; token < 4; ++token) person.see("\x1b[J");
  person.type(kCtrlC);
  person.see(kReady);
  person.type("half a line" + kCtrlC);  // clears it
  person.see(kReady);
  person.type("/undo\r");
  person.see("forgotten: One day");
  person.see(kReady);
  person.type(kCtrlC);
  person.see("once more");
  person.see(kReady);
  person.type(kCtrlC);
  EXPECT_EQ(person.leave().code, 130);
}

// One that comes before the prompt is lost; it does not take the meaning from the next.
TEST_F(ChatTest, CtrlDLeavesAlsoBehindOneThatCameTooEarly) {
  Sitting sitting;
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  person.type(kCtrlD);
  person.see(kReady);
  EXPECT_EQ(person.leave_by(kCtrlD).code, 0);
}

TEST_F(ChatTest, APasteOfSeveralLinesIsOneMessage) {
  Sitting sitting(2);
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  const std::string saved = sitting.home + "/saved.json";
  person.see(kReady);
  person.type("About: \x1b[200~one\rtwo\rthree\x1b[201~ !");
  person.see("[paste 1: 3 lines]");
  person.type("\r");
  person.see("tok");
  person.see(kReady);
  person.type("/save " + saved + "\r");
  person.see("written");
  person.see(kReady);
  EXPECT_EQ(person.leave_by(kCtrlD).code, 0);
  EXPECT_EQ(Json::parse(content_of(saved))[0]["content"], "About: one\ntwo\nthree !");
}

TEST_F(ChatTest, AWindowMayChangeItsSize) {
  Sitting sitting(4);
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  const std::string saved = sitting.home + "/saved.json";
  const std::string words = "the quick brown fox jumps over the lazy dog and away";
  person.see(kReady);
  person.type(words);
  person.see("away");
  person.resize(30);
  // The line is drawn again, broken where the window now ends.
  const std::string drawn = person.see("away");
  EXPECT_NE(drawn.find("the quick"), std::string::npos) << drawn;
  person.type(
      "\x7f\x7f\x7f\x7f"
      "far");
  person.see("far");
  person.resize(100);
  person.see("far");
  person.type("\r");
  person.see("tok");
  person.resize(20);
  person.see(kReady);
  person.type("/save " + saved + "\r");
  person.see("written");
  person.see(kReady);
  EXPECT_EQ(person.leave_by(kCtrlD).code, 0);
  EXPECT_EQ(Json::parse(content_of(saved))[0]["content"], words.substr(0, words.size() - 4) + "far");
}

// A terminal that cannot move its cursor gets lines and prompts, and no escapes.
TEST_F(ChatTest, ADumbTerminalWillDo) {
  Sitting sitting(12, "dumb");
  Person& person = sitting.person;
  if (!person.has_terminal()) GTEST_SKIP() << "no terminals here";
  person.see("> ");
  person.type("One day\n");
  EXPECT_EQ(person.see("tok/s").find('\x1b'), std::string::npos);
  person.see("> ");
  person.type("/exit\n");
  EXPECT_EQ(person.leave().code, 0);
}

TEST_F(ChatTest, AHistoryOfSomebodyElseIsLeftAlone) {
  Sitting sitting;
  if (!sitting.person.has_terminal()) GTEST_SKIP() << "no terminals here";
  sitting.person.see(kReady);
  EXPECT_EQ(sitting.person.leave_by(kCtrlD).code, 0);
  std::filesystem::remove(sitting.history);
  std::filesystem::create_symlink("/dev/null", sitting.history);
  Person person(Sitting::words(12), {{"XDG_STATE_HOME", sitting.home}});
  person.see("cannot be used");
  person.see(kReady);
  EXPECT_EQ(person.leave_by(kCtrlD).code, 0);
}

}  // namespace
}  // namespace sluice::program
